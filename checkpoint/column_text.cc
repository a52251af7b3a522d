// Reads and writes maps and lists as JSON columns without a document tree, since a start reads tens
// of thousands of them.
#include "checkpoint/column_text.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/number.h"

namespace qrm::checkpoint {
namespace {

using Json = nlohmann::json;

Status Unreadable(std::string_view text) {
  return Errorf(StatusCode::kDataLoss,
                "cannot read column value '{}': it is not as written; move the database "
                "aside and restart",
                text);
}

StatusOr<std::string> Dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot store a text: it is not UTF-8; correct what the plugin or pod sends");
  }
}

template <typename Map>
StatusOr<std::string> DumpMap(const Map& map) {
  if (map.empty()) {
    return std::string();
  }
  Json json = Json::object();
  for (const auto& [key, value] : map) {
    if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
      json[key] = value;
    } else {
      json[std::to_string(key)] = value;
    }
  }
  return Dump(json);
}

/// Takes a JSON object of plain members and hands each to `Sink(key, value)`; refuses the rest.
template <typename Value, typename Sink>
class FlatReader {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit FlatReader(Sink sink) : sink_(std::move(sink)) {}

  bool key(string_t& text) {
    key_ = std::move(text);
    return true;
  }
  bool string(string_t& text) {
    if constexpr (std::is_same_v<Value, std::string>) {
      return depth_ == 1 && sink_(std::move(key_), std::move(text));
    }
    return false;
  }
  bool number_unsigned(number_unsigned_t number) { return Number(number); }
  bool number_integer(number_integer_t number) { return Number(number); }
  bool number_float(number_float_t number, const string_t&) { return Number(number); }
  bool start_object(std::size_t) { return ++depth_ == 1; }
  bool end_object() { return true; }
  bool start_array(std::size_t) { return false; }
  bool end_array() { return false; }
  bool null() { return false; }
  bool boolean(bool) { return false; }
  bool binary(binary_t&) { return false; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  template <typename Number_>
  bool Number(Number_ number) {
    if constexpr (std::is_same_v<Value, double> ||
                  (std::is_same_v<Value, uint64_t> && std::is_same_v<Number_, number_unsigned_t>)) {
      return depth_ == 1 && sink_(std::move(key_), static_cast<Value>(number));
    }
    return false;
  }

  Sink sink_;
  std::string key_;
  int depth_ = 0;
};

template <typename Value, typename Sink>
Status ReadFlat(std::string_view text, Sink sink) {
  if (text.empty()) {
    return OkStatus();
  }
  FlatReader<Value, Sink> reader(std::move(sink));
  return Json::sax_parse(text, &reader) ? OkStatus() : Unreadable(text);
}

/// Reads `{"key":"value",...}` as DumpMap writes it when nothing in it needed an escape: most maps,
/// at a tenth of a parser's cost. False, with `map` empty, for anything else.
bool ReadUnescaped(std::string_view text, StringMap& map) {
  if (!text.starts_with("{\"") || !text.ends_with("\"}") ||
      text.find('\\') != std::string_view::npos) {
    return false;
  }
  text = text.substr(2, text.size() - 3);  // key":"value","key":"value"
  while (!text.empty()) {
    const std::size_t key_end = text.find("\":\"");
    const std::size_t value = key_end + 3;
    const std::size_t value_end =
        key_end == std::string_view::npos ? std::string_view::npos : text.find('"', value);
    const bool last = value_end != std::string_view::npos && value_end + 1 == text.size();
    if (value_end == std::string_view::npos || (!last && text.substr(value_end, 3) != "\",\"")) {
      map.clear();
      return false;
    }
    map.emplace_hint(map.end(), text.substr(0, key_end), text.substr(value, value_end - value));
    text.remove_prefix(last ? text.size() : value_end + 3);
  }
  return true;
}

/// The same for numbers: `{"key":number,...}`.
template <typename Value, typename Sink>
bool ReadUnescapedNumbers(std::string_view text, const Sink& sink) {
  if (!text.starts_with("{\"") || !text.ends_with('}') ||
      text.find('\\') != std::string_view::npos) {
    return false;
  }
  text.remove_prefix(1);
  while (text.starts_with('"')) {
    const std::size_t key_end = text.find("\":", 1);
    if (key_end == std::string_view::npos) {
      return false;
    }
    const char* const number = text.data() + key_end + 2;
    Value value{};
    const auto [end, error] = std::from_chars(number, text.data() + text.size(), value);
    const bool numeric =
        error == std::errc() && (std::isdigit(static_cast<unsigned char>(end[-1])) != 0);
    if (!numeric || (*end != ',' && *end != '}') || !sink(text.substr(1, key_end - 1), value)) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
  }
  return text.empty();
}

/// Reads a list of flat lists of `width` members; `take` sees each and refuses with false.
template <typename Take>
Status ReadTuples(std::string_view text, std::size_t width, const Take& take) {
  if (text.empty()) {
    return OkStatus();
  }
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) {
    return Unreadable(text);
  }
  for (const Json& tuple : json) {
    if (!tuple.is_array() || tuple.size() != width || !tuple[0].is_string() ||
        !tuple[1].is_string() || !take(tuple)) {
      return Unreadable(text);
    }
  }
  return OkStatus();
}

constexpr std::string_view kPreferred = " preferred";
constexpr std::string_view kAnyNode = "any";
constexpr std::string_view kNoHints = "none";
constexpr std::string_view kHintSeparator = "; ";

StatusOr<TopologyHint> ParseHint(std::string_view text) {
  TopologyHint hint;
  if (text.ends_with(kPreferred)) {
    hint.preferred = true;
    text.remove_suffix(kPreferred.size());
  }
  if (text != kAnyNode) {
    StatusOr<NumaMask> nodes = NumaMask::Parse(text);
    if (!nodes.ok() || nodes->Empty()) {
      return Unreadable(text);
    }
    hint.nodes = *std::move(nodes);
  }
  return hint;
}

}  // namespace

StatusOr<std::string> ToColumn(const StringMap& map) {
  return DumpMap(map);
}

StatusOr<std::string> ToColumn(const std::map<std::string, double>& map) {
  for (const auto& [name, number] : map) {
    if (!std::isfinite(number)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot store {} of {}: it is not a finite number; correct the request", number,
                    name);
    }
  }
  return DumpMap(map);
}

StatusOr<std::string> ToColumn(const std::map<uint64_t, uint64_t>& map) {
  return DumpMap(map);
}

StatusOr<std::string> ToColumn(const std::vector<Mount>& mounts) {
  Json json = Json::array();
  for (const Mount& mount : mounts) {
    json.push_back(Json::array({mount.container_path, mount.host_path, mount.read_only}));
  }
  return mounts.empty() ? std::string() : Dump(json);
}

StatusOr<std::string> ToColumn(const std::vector<DeviceSpec>& devices) {
  Json json = Json::array();
  for (const DeviceSpec& device : devices) {
    json.push_back(Json::array({device.container_path, device.host_path, device.permissions}));
  }
  return devices.empty() ? std::string() : Dump(json);
}

std::string ToColumn(const std::optional<std::vector<TopologyHint>>& hints) {
  if (!hints.has_value()) {
    return "";
  }
  std::string text;
  for (const TopologyHint& hint : *hints) {
    text += text.empty() ? "" : kHintSeparator;
    text += hint.nodes.Empty() ? kAnyNode : ToString(hint.nodes);
    text += hint.preferred ? kPreferred : "";
  }
  return text.empty() ? std::string(kNoHints) : text;
}

Status FromColumn(std::string_view text, StringMap& map) {
  if (ReadUnescaped(text, map)) {
    return OkStatus();
  }
  return ReadFlat<std::string>(text, [&](std::string key, std::string value) {
    map.emplace_hint(map.end(), std::move(key), std::move(value));
    return true;
  });
}

Status FromColumn(std::string_view text, std::map<std::string, double>& map) {
  const auto put = [&](std::string_view key, double value) {
    map.emplace_hint(map.end(), key, value);
    return true;
  };
  if (ReadUnescapedNumbers<double>(text, put)) {
    return OkStatus();
  }
  map.clear();
  return ReadFlat<double>(text, put);
}

Status FromColumn(std::string_view text, std::map<uint64_t, uint64_t>& map) {
  const auto put = [&](std::string_view key, uint64_t value) {
    const auto node = ParseNumber<uint64_t>(key);
    return node.has_value() && map.emplace(*node, value).second;
  };
  if (ReadUnescapedNumbers<uint64_t>(text, put)) {
    return OkStatus();
  }
  map.clear();
  return ReadFlat<uint64_t>(text, put);
}

Status FromColumn(std::string_view text, std::vector<Mount>& mounts) {
  return ReadTuples(text, 3, [&](const Json& tuple) {
    if (!tuple[2].is_boolean()) {
      return false;
    }
    mounts.push_back({tuple[0], tuple[1], tuple[2].get<bool>()});
    return true;
  });
}

Status FromColumn(std::string_view text, std::vector<DeviceSpec>& devices) {
  return ReadTuples(text, 3, [&](const Json& tuple) {
    if (!tuple[2].is_string()) {
      return false;
    }
    devices.push_back({tuple[0], tuple[1], tuple[2]});
    return true;
  });
}

Status FromColumn(std::string_view text, std::optional<std::vector<TopologyHint>>& hints) {
  hints.reset();
  if (text.empty()) {
    return OkStatus();
  }
  hints.emplace();
  if (text == kNoHints) {
    return OkStatus();
  }
  while (true) {
    const std::size_t end = text.find(kHintSeparator);
    QRM_ASSIGN_OR_RETURN(TopologyHint hint, ParseHint(text.substr(0, end)));
    hints->push_back(std::move(hint));
    if (end == std::string_view::npos) {
      return OkStatus();
    }
    text.remove_prefix(end + kHintSeparator.size());
  }
}

void RowSum::AddWord(uint64_t word) {
  constexpr uint64_t kPrime = 0x100000001b3;
  hash_ = (hash_ ^ word) * kPrime;
  hash_ ^= hash_ >> 32;  // a multiplication carries upward only
}

void RowSum::Add(const SqliteValue& value) {
  AddWord(static_cast<uint64_t>(value.kind()));
  switch (value.kind()) {
    case SqliteValue::Kind::kNull:
      break;
    case SqliteValue::Kind::kInteger:
      AddWord(static_cast<uint64_t>(value.integer()));
      break;
    case SqliteValue::Kind::kReal: {
      uint64_t bits = 0;
      const double real = value.real() == 0 ? 0 : value.real();  // SQLite has one zero
      std::memcpy(&bits, &real, sizeof bits);
      AddWord(bits);
      break;
    }
    case SqliteValue::Kind::kText:
    case SqliteValue::Kind::kBlob: {
      std::string_view text = value.text();
      AddWord(text.size());
      for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
        uint64_t word = 0;
        std::memcpy(&word, text.data(), sizeof word);
        AddWord(word);
      }
      uint64_t tail = 0;
      if (!text.empty()) {  // an empty view may have no address
        std::memcpy(&tail, text.data(), text.size());
      }
      AddWord(tail);
      break;
    }
  }
}

namespace {

/// Appends `values` and their checksum to `row`.
void AppendSummed(SqliteStatement::Values values, std::vector<SqliteValue>& row) {
  RowSum sum;
  for (const SqliteValue& value : values) {
    sum.Add(value);
    row.push_back(value);
  }
  row.emplace_back(sum.value());
}

}  // namespace

Status RunSummed(SqliteStatement& statement, SqliteStatement::Values values,
                 SqliteStatement::Values rest) {
  std::vector<SqliteValue> row;
  row.reserve(values.size() + 1 + rest.size());
  AppendSummed(values, row);
  row.insert(row.end(), rest.begin(), rest.end());
  return statement.Run(row);
}

Status RunSummedTwice(SqliteStatement& statement, SqliteStatement::Values values,
                      SqliteStatement::Values more) {
  std::vector<SqliteValue> row;
  row.reserve(values.size() + more.size() + 2);
  AppendSummed(values, row);
  AppendSummed(more, row);
  return statement.Run(row);
}

}  // namespace qrm::checkpoint
