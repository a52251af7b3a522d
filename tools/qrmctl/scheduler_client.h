// What qrm-scheduler is asked over HTTP.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/http/https_url.h"

namespace qrm::manager::cli {

/// Where qrm-scheduler serves, and how.
struct SchedulerUrl {
  enum class Scheme { kHttp, kHttps };

  Scheme scheme = Scheme::kHttp;
  HttpsUrl server;
};

/// "http://ADDRESS[:PORT]" or "https://HOST[:PORT]", with 9755 for no port. Errors:
/// kInvalidArgument with the form.
StatusOr<SchedulerUrl> ParseSchedulerUrl(const std::string& url);

/// The body that qrm-scheduler answers with to a GET of `target`. `credentials`, for https, is a
/// directory with ca.crt, which knows the server, and our tls.crt and tls.key. Errors: kUnavailable
/// with the cure when no answer comes within 30 s; else the answer's own sentence.
StatusOr<std::string> AskScheduler(const SchedulerUrl& url, const std::string& credentials,
                                   const std::string& target);

}  // namespace qrm::manager::cli
