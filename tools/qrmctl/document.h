// Results for machines: any message as JSON or YAML.
#pragma once

#include <ostream>
#include <type_traits>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "tools/qrmctl/command_line.h"

namespace google::protobuf {
class Message;
}

namespace qrm::manager::cli {

/// Fields keep their names and order; numbers are numbers, and what is unset is shown as zero or
/// empty, so that every document of a kind has the same keys.
using Document = nlohmann::ordered_json;

Document ToDocument(const google::protobuf::Message& message);

/// Prints `document` as JSON, as YAML or what a jsonpath makes of it, as `format` says.
void Print(const Document& document, const OutputFormat& format, std::ostream& out);
void PrintMessage(const google::protobuf::Message& message, const OutputFormat& format,
                  std::ostream& out);

/// Shows `answer` in the format that `line` was given, for people by `print`; returns the exit
/// code. `print` may return a Status, whose error is one of the words that were typed.
template <typename Message, typename Print>
int Show(const CommandLine& line, const StatusOr<Message>& answer, std::ostream& out,
         std::ostream& err, Print print) {
  if (!answer.ok()) {
    return line.Fail(answer.status(), err);
  }
  if (!line.format().IsText()) {
    PrintMessage(*answer, line.format(), out);
  } else if constexpr (std::is_void_v<decltype(print(*answer))>) {
    print(*answer);
  } else if (const Status printed = print(*answer); !printed.ok()) {
    return line.Misuse(MessageOf(printed), err);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
