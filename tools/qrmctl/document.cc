// Walks a message by reflection, and writes YAML from the same document as JSON.
#include "tools/qrmctl/document.h"

#include <algorithm>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/base/foreign_text.h"
#include "tools/qrmctl/json_path.h"

namespace qrm::manager::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// The value of a field, or of its element `index`; of the kinds that our API uses.
Document ValueOf(const Message& message, const FieldDescriptor& field, int index) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? reflection.GetRepeatedBool(message, &field, index)
                      : reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? reflection.GetRepeatedInt32(message, &field, index)
                      : reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? reflection.GetRepeatedInt64(message, &field, index)
                      : reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                      : reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? reflection.GetRepeatedDouble(message, &field, index)
                      : reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? reflection.GetRepeatedString(message, &field, index)
                      : reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToDocument(repeated ? reflection.GetRepeatedMessage(message, &field, index)
                                 : reflection.GetMessage(message, &field));
    default:
      return nullptr;
  }
}

/// A map's entries are messages of a key (1) and a value (2).
Document MapOf(const Message& message, const FieldDescriptor& field) {
  Document object = Document::object();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::map<std::string, Document> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Document key = ValueOf(entry, *entry.GetDescriptor()->map_key(), 0);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        ValueOf(entry, *entry.GetDescriptor()->map_value(), 0);
  }
  for (auto& [key, value] : sorted) {
    object[key] = std::move(value);
  }
  return object;
}

/// Quoted when it would read as another type, or has characters that are obeyed instead of shown.
void EmitText(const std::string& text, YAML::Emitter& emitter) {
  const bool obeyed = Escaped(text) != text;
  const bool ambiguous = text.empty() || obeyed || Document::accept(text) || text == "~" ||
                         text.find_first_not_of("0123456789.-+eExX_:") == std::string::npos;
  if (obeyed) {
    emitter << YAML::EscapeNonAscii;
  }
  emitter << (ambiguous ? YAML::DoubleQuoted : YAML::Auto) << text;
}

void Emit(const Document& document, YAML::Emitter& emitter) {
  if (document.is_object()) {
    emitter << YAML::BeginMap;
    for (const auto& [key, value] : document.items()) {
      emitter << YAML::Key;
      EmitText(key, emitter);
      emitter << YAML::Value;
      Emit(value, emitter);
    }
    emitter << YAML::EndMap;
  } else if (document.is_array()) {
    emitter << YAML::BeginSeq;
    for (const Document& value : document) {
      Emit(value, emitter);
    }
    emitter << YAML::EndSeq;
  } else if (document.is_string()) {
    EmitText(document.get<std::string>(), emitter);
  } else {
    emitter << document.dump();
  }
}

}  // namespace

Document ToDocument(const Message& message) {
  Document object = Document::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    Document& value = object[field.name()];
    if (field.is_map()) {
      value = MapOf(message, field);
    } else if (field.is_repeated()) {
      value = Document::array();
      for (int j = 0; j < message.GetReflection()->FieldSize(message, &field); ++j) {
        value.push_back(ValueOf(message, field, j));
      }
    } else {
      value = ValueOf(message, field, 0);
    }
  }
  return object;
}

void Print(const Document& document, const OutputFormat& format, std::ostream& out) {
  if (format.kind == OutputFormat::kJsonPath) {
    const std::string text = EvaluateJsonPath(format.path, document).value_or("");
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      out << Escaped(text.substr(begin, end - begin)) << (end < text.size() ? "\n" : "");
    }
    out << (text.ends_with('\n') ? "" : "\n");
    return;
  }
  if (format.kind == OutputFormat::kYaml) {
    YAML::Emitter emitter;
    Emit(document, emitter);
    out << emitter.c_str() << '\n';
    return;
  }
  // Names come from pods: bytes that are no UTF-8 are replaced, where the library would throw.
  out << EscapedJson(document.dump(2, ' ', false, Document::error_handler_t::replace)) << '\n';
}

void PrintMessage(const Message& message, const OutputFormat& format, std::ostream& out) {
  Print(ToDocument(message), format, out);
}

}  // namespace qrm::manager::cli
