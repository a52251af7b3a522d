// Listens to the library's parser, which keeps its own depth on the heap, and builds the document.
#include "api/base/foreign_json.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/rejected.h"

namespace qrm {
namespace {

using nlohmann::json;
using TakeItem = std::function<void(const json& item)>;

/// Stops the parser at the first event that is beyond a bound. The library's own filter would not:
/// it reads on, and looks through all that an array has at the end of each of its objects.
class JsonBuilder final : public json::json_sax_t {
 public:
  JsonBuilder(const JsonBounds& bounds, const TakeItem& take) : bounds_(bounds), take_(take) {}

  json root;
  Status problem;

  bool null() override { return PutScalar(nullptr); }
  bool boolean(bool value) override { return PutScalar(value); }
  bool number_integer(number_integer_t value) override { return PutScalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return PutScalar(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return PutScalar(value);
  }
  bool string(string_t& value) override { return PutScalar(std::move(value)); }
  bool binary(binary_t& /*bytes*/) override { return false; }  // JSON has none

  bool start_object(std::size_t /*elements*/) override { return Open(json::object()); }
  bool start_array(std::size_t /*elements*/) override {
    const bool of_items = take_ && open_.size() == 1 && member_is_items_;
    if (!Open(json::array())) {
      return false;
    }
    if (of_items) {
      items_ = open_.back();
      outside_ = values_;
    }
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (bounds_.unique_keys && open_.back()->contains(name)) {
      return Refuse(StatusCode::kAlreadyExists, fmt::format("has key '{}' twice", Quoted(name)));
    }
    member_is_items_ = name == "items";
    member_ = &(*open_.back())[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& error) override {
    return Refuse(StatusCode::kInvalidArgument,
                  fmt::format("is not JSON: {}", Quoted(error.what())));
  }

 private:
  bool Refuse(StatusCode code, const std::string& cause) {
    problem = Status(code, cause);
    return false;
  }

  /// Where `value` stands now; null when it is one too many.
  json* Put(json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (++values_ > bounds_.values) {
      Refuse(StatusCode::kResourceExhausted,
             fmt::format("has more than {} values", bounds_.values));
      return nullptr;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      return &parent.get_ref<json::array_t&>().emplace_back(std::move(value));
    }
    *member_ = std::move(value);
    return member_;
  }

  bool PutScalar(json value) {
    const bool fits = Put(std::move(value)) != nullptr;
    if (fits) {
      TakeCompleteItem();
    }
    return fits;
  }

  bool Open(json value) {
    if (open_.size() == bounds_.depth) {
      return Refuse(StatusCode::kResourceExhausted,
                    fmt::format("is nested more than {} deep", bounds_.depth));
    }
    json* const place = Put(std::move(value));
    if (place == nullptr) {
      return false;
    }
    open_.push_back(place);
    return true;
  }

  bool Close() {
    items_ = open_.back() == items_ ? nullptr : items_;
    open_.pop_back();
    TakeCompleteItem();
    return true;
  }

  void TakeCompleteItem() {
    if (items_ != nullptr && !open_.empty() && open_.back() == items_) {
      auto& items = items_->get_ref<json::array_t&>();
      take_(items.back());
      items.clear();
      values_ = ++outside_;
    }
  }

  const JsonBounds& bounds_;
  const TakeItem& take_;
  std::vector<json*> open_;       // the objects and arrays around what comes next
  json* member_ = nullptr;        // of the innermost object: the value of its latest key
  bool member_is_items_ = false;  // of the outermost, where `open_` has one element
  json* items_ = nullptr;         // the list whose items are taken, while it is read
  std::size_t values_ = 0;        // so far; of items that were taken, one each
  std::size_t outside_ = 0;       // the same without the item that is being read
};

Status BeyondBounds(std::string_view text, const Status& problem) {
  Reject(Rejected::kJson, fmt::format("cannot read JSON: it {}; see who wrote {}",
                                      MessageOf(problem), Quoted(text)));
  return problem;
}

}  // namespace

StatusOr<json> ParseJsonList(std::string_view text, const TakeItem& take,
                             const JsonBounds& bounds) {
  if (text.size() > bounds.bytes) {
    return BeyondBounds(text, Errorf(StatusCode::kResourceExhausted, "has {} bytes, more than {}",
                                     text.size(), bounds.bytes));
  }
  JsonBuilder builder(bounds, take);
  if (!json::sax_parse(text, &builder)) {
    const bool is_json = builder.problem.code() == StatusCode::kResourceExhausted;
    return is_json ? BeyondBounds(text, builder.problem) : builder.problem;
  }
  return std::move(builder.root);
}

StatusOr<json> ParseJson(std::string_view text, const JsonBounds& bounds) {
  return ParseJsonList(text, nullptr, bounds);
}

const json& PartOf(const json& object, const char* key) {
  static const json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : nothing;
}

std::string TextIn(const json& object, const char* key) {
  const json& text = PartOf(object, key);
  return text.is_string() ? text.get<std::string>() : std::string();
}

}  // namespace qrm
