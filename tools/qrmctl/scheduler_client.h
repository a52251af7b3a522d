// What qrm-scheduler is asked over HTTP.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/http/http_address.h"

namespace qrm::manager::cli {

/// "http://HOST[:PORT]", with 9755 for no port. Errors: kInvalidArgument with the form.
StatusOr<HttpAddress> ParseSchedulerUrl(const std::string& url);

/// The body that qrm-scheduler answers with to a GET of `target`. Errors: kUnavailable with the
/// cure when nobody answers within 30 s; else the answer's own sentence.
StatusOr<std::string> AskScheduler(const HttpAddress& address, const std::string& target);

}  // namespace qrm::manager::cli
