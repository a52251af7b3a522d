// Results for machines: any message as JSON or YAML.
#pragma once

#include <ostream>

#include <nlohmann/json_fwd.hpp>

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

}  // namespace qrm::manager::cli
