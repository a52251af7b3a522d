// YAML: whatever is read is within the bounds with its aliases written out, and a mapping of it on
// one line reads back as the same without any.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <yaml-cpp/yaml.h>

#include "api/base/check.h"
#include "api/base/section.h"
#include "test/fuzz/sentence.h"

namespace {

using qrm::config::ParseYamlDocuments;
using qrm::config::YamlBounds;

constexpr YamlBounds kTight{.bytes = 4096, .depth = 6, .nodes = 300};
/// Of texts that can be read back: what is beyond these bounds on one line, kForeignYaml rejects.
constexpr YamlBounds kReadBack{.bytes = qrm::config::kForeignYaml.bytes,
                               .nodes = qrm::config::kForeignYaml.nodes};

struct Size {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  std::size_t levels = 0;
};

void Add(const YAML::Node& node, std::size_t level, Size& size) {
  ++size.nodes;
  size.bytes += node.IsScalar() ? node.Scalar().size() : 0;
  if (!node.IsMap() && !node.IsSequence()) {
    return;
  }
  size.levels = std::max(size.levels, level + 1);
  for (const auto& entry : node) {
    if (node.IsMap()) {
      Add(entry.first, level + 1, size);
      Add(entry.second, level + 1, size);
    } else {
      Add(entry, level + 1, size);
    }
  }
}

void CheckBounds(const std::string& text, const YamlBounds& bounds) {
  const auto documents = ParseYamlDocuments(text, "f", bounds);
  if (!documents.ok()) {
    qrm::fuzz::CheckSentence(documents.status());
    return;
  }
  Size size;
  for (const YAML::Node& document : *documents) {
    Add(document, 0, size);
  }
  QRM_CHECK(size.nodes <= bounds.nodes && size.bytes <= bounds.bytes &&
            size.levels <= bounds.depth);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckBounds(text, kTight);
  CheckBounds(text, {});
  CheckBounds(text, qrm::config::kForeignYaml);
  const auto section = qrm::config::Section::Parse(text, "f", kReadBack);
  if (section.ok()) {
    const std::string line = section->OneLine();
    const auto again = qrm::config::Section::Parse(line, "f", qrm::config::kForeignYaml);
    QRM_CHECK(again.ok() ? again->Keys().size() == section->Keys().size()
                         : qrm::MessageOf(again.status()).find("alias;") == std::string::npos);
  }
  return 0;
}
