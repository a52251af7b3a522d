// Picks parts of a document by templates as kubectl -o jsonpath takes them.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"
#include "tools/qrmctl/document.h"

namespace qrm::manager::cli {

/// The text that `path` makes of `document`: text outside braces unchanged; in braces steps such
/// as {.pods[0].name}, {.pods[*].uid}, {['a.b']}, {.pods[?(@.name=="db")].uid}, texts such as
/// {"\n"}, and {range .pods[*]}...{end}. Several results have a space between them, objects and
/// lists are JSON. A template without braces is one of steps. What is not there is left out.
/// Errors: kInvalidArgument with the place in `path`. Source: Kubernetes, "JSONPath Support".
StatusOr<std::string> EvaluateJsonPath(std::string_view path, const Document& document);

}  // namespace qrm::manager::cli
