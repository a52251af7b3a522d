// Listens to the library's parser, which keeps its own depth on the heap.
#include "plugins/placement/flat_json.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"

namespace qrm::placement {
namespace {

using nlohmann::json;

/// Stops the parser at the first event that is beyond a bound.
class FlatReader final : public json::json_sax_t {
 public:
  StringMap values;
  Status problem;

  bool null() override { return Pass(); }
  bool number_integer(number_integer_t /*number*/) override { return Pass(); }
  bool number_unsigned(number_unsigned_t /*number*/) override { return Pass(); }
  bool number_float(number_float_t /*number*/, const string_t& /*text*/) override { return Pass(); }
  bool binary(binary_t& /*bytes*/) override { return Pass(); }
  bool boolean(bool value) override { return Take(value ? "true" : "false"); }
  bool string(string_t& value) override { return Take(std::move(value)); }

  bool start_object(std::size_t /*elements*/) override { return Enter(); }
  bool start_array(std::size_t /*elements*/) override { return depth_ == 0 ? NoObject() : Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    if (++keys_ > kMostJsonKeys) {
      problem = Errorf(StatusCode::kInvalidArgument,
                       "has more than {} keys; leave out those that mean nothing", kMostJsonKeys);
      return false;
    }
    if (depth_ == 1) {
      key_ = std::move(name);
    }
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return NoObject();
  }

 private:
  bool NoObject() {
    problem = Errorf(StatusCode::kInvalidArgument,
                     "is no JSON object; write one such as {{\"numa_binding\": \"true\"}}");
    return false;
  }
  bool Pass() { return depth_ > 0 || NoObject(); }
  bool Take(std::string value) {
    if (depth_ == 1) {
      values.insert_or_assign(key_, std::move(value));
    }
    return Pass();
  }
  bool Enter() {
    if (++depth_ > kMostJsonDepth) {
      problem = Errorf(StatusCode::kInvalidArgument,
                       "is nested more than {} deep; write its keys side by side", kMostJsonDepth);
      return false;
    }
    return true;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::size_t keys_ = 0;
  std::string key_;  // the last of the outermost object
};

}  // namespace

StatusOr<StringMap> ParseFlatJson(std::string_view text) {
  if (text.size() > kMostJsonBytes) {
    return Errorf(StatusCode::kInvalidArgument, "has {} bytes, more than {}; write less",
                  text.size(), kMostJsonBytes);
  }
  FlatReader reader;
  if (!json::sax_parse(text, &reader)) {
    return reader.problem;
  }
  return std::move(reader.values);
}

}  // namespace qrm::placement
