// Foreign JSON: the result equals the library's, is within the bounds, and is safe to copy, compare
// and print; a list gives the same items as the whole.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "api/base/foreign_json.h"
#include "test/fuzz/sentence.h"

namespace {

using nlohmann::json;

constexpr qrm::JsonBounds kTight{.bytes = 4096, .depth = 4, .values = 64};

std::size_t DepthOf(const json& value) {
  std::size_t depth = 0;
  for (const json& inner : value) {
    depth = std::max(depth, inner.is_structured() ? DepthOf(inner) : 0);
  }
  return depth + 1;
}

std::size_t ValuesIn(const json& value) {
  std::size_t values = 0;
  if (value.is_structured()) {
    for (const json& inner : value) {
      values += 1 + ValuesIn(inner);
    }
  }
  return values;
}

void CheckBounded(const json& document, const qrm::JsonBounds& bounds) {
  QRM_CHECK(!document.is_structured() || DepthOf(document) <= bounds.depth);
  QRM_CHECK(ValuesIn(document) <= bounds.values);
}

/// Checks that the taken items and the rest are the document.
void CheckList(std::string_view text, const json& document) {
  json items = json::array();
  qrm::StatusOr<json> rest =
      qrm::ParseJsonList(text, [&](const json& item) { items.push_back(item); });
  QRM_CHECK(rest.ok());
  const bool is_list = rest->is_object() && rest->contains("items") && (*rest)["items"].is_array();
  QRM_CHECK(!is_list || (*rest)["items"].empty());
  // Of a duplicate key, the first list was taken, too.
  if (is_list && items.size() == document["items"].size()) {
    (*rest)["items"] = items;
    QRM_CHECK(*rest == document);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto tight = qrm::ParseJson(text, kTight); tight.ok()) {
    CheckBounded(*tight, kTight);
  } else {
    qrm::fuzz::CheckSentence(tight.status());
  }
  const qrm::StatusOr<json> document = qrm::ParseJson(text);
  if (!document.ok()) {
    qrm::fuzz::CheckSentence(document.status());
    QRM_CHECK(document.status().code() == qrm::StatusCode::kResourceExhausted ||
              !json::accept(text));
    return 0;
  }
  CheckBounded(*document, {});
  QRM_CHECK(*document == json::parse(text));
  QRM_CHECK(json::parse(document->dump()) == *document);
  CheckList(text, *document);
  return 0;
}
