// Keeps web pages from asking the extender through a browser that reaches its port.
#pragma once

#include <optional>

#include "api/http/http_session.h"

namespace qrm::scheduler {

/// The answer to a call that a web page may have sent, to prevent DNS rebinding and cross-site
/// requests. Such a call has a Host that is not the server's (`is_ours`: it is), an Origin, or a
/// body that is not declared as JSON, which pages may send to any server. Absent for other calls.
/// Source: Fetch, "CORS-safelisted request-header"; kube-scheduler sends application/json.
std::optional<HttpAnswer> RefusalOfBrowsers(const HttpQuestion& question, bool is_ours);

}  // namespace qrm::scheduler
