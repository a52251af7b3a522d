// Looks at the headers that a page cannot choose.
#include "scheduler/extender/call_guard.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "api/base/foreign_text.h"

namespace qrm::scheduler {
namespace {

constexpr int kForbidden = 403;
constexpr int kWrongType = 415;
constexpr std::string_view kJsonType = "application/json";

bool IsJson(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.substr(0, type.find_last_not_of(" \t") + 1) == kJsonType;
}

}  // namespace

std::optional<HttpAnswer> RefusalOfBrowsers(const HttpQuestion& question, bool is_ours) {
  if (!is_ours) {
    return HttpAnswer{kForbidden,
                      fmt::format("cannot answer under the name {}; ask for localhost, an address, "
                                  "or a name of the certificate\n",
                                  Quoted(question.host))};
  }
  if (!question.origin.empty()) {
    return HttpAnswer{kForbidden, fmt::format("cannot answer a web page, of {}; ask by a program\n",
                                              Quoted(question.origin))};
  }
  if (question.method == "POST" && !IsJson(question.content_type)) {
    return HttpAnswer{kWrongType, fmt::format("cannot read a body of type {}; send it as {}\n",
                                              Quoted(question.content_type), kJsonType)};
  }
  return std::nullopt;
}

}  // namespace qrm::scheduler
