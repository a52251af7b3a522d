// Keeps web pages from asking the extender through a browser that reaches its port.
#pragma once

#include <optional>

#include "api/http/http_session.h"

namespace qrm::scheduler {

/// What a call is answered with that a page may have sent: one under a name that is not the
/// server's (`is_ours`: it is), which a page makes its own name lead to; one with an Origin; and a
/// body that is not declared as JSON, which pages may send to anybody. Absent for other calls.
/// Source: Fetch, "CORS-safelisted request-header"; kube-scheduler sends application/json.
std::optional<HttpAnswer> RefusalOfBrowsers(const HttpQuestion& question, bool is_ours);

}  // namespace qrm::scheduler
