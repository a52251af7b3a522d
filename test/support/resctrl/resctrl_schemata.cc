// Writes of schemata and mode files in resctrl: all of a write is applied, or nothing.
#include <bit>
#include <cerrno>

#include <fmt/format.h>

#include "api/base/number.h"
#include "test/support/resctrl/resctrl_model.h"

namespace qrm::test {
namespace {

std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::string_view Before(char mark, std::string_view& rest) {
  const std::size_t end = rest.find(mark);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

}  // namespace

int ResctrlModel::WriteSchemata(const std::string& name, std::string_view text) {
  Values staged;
  while (!text.empty()) {
    if (const int error = StageLine(name, Before('\n', text), staged); error != 0) {
      return error;
    }
  }
  Values& schemata = groups_.at(name).schemata;
  for (const auto& [resource, values] : staged) {
    for (const auto& [id, value] : values) {
      schemata[resource][id] = value;
    }
  }
  return 0;
}

int ResctrlModel::StageLine(const std::string& name, std::string_view line, Values& staged) {
  if (line.find(':') == std::string_view::npos) {
    return Fail(EINVAL, "Missing ':'");
  }
  const std::string resource(WithoutSpaces(Before(':', line)));
  const Values& schemata = groups_.at(name).schemata;
  if (WithoutSpaces(line).empty()) {
    return Fail(EINVAL, fmt::format("Missing '{}' value", resource));
  }
  if (!schemata.contains(resource)) {
    return Fail(EINVAL, fmt::format("Unknown or unsupported resource name '{}'", resource));
  }
  while (!line.empty()) {
    std::string_view value = Before(';', line);
    const bool has_value = value.find('=') != std::string_view::npos;
    const auto id = ParseNumber<int>(WithoutSpaces(Before('=', value)));
    if (!has_value || !id.has_value()) {
      return Fail(EINVAL, "Missing '=' or non-numeric domain");
    }
    if (!schemata.at(resource).contains(*id)) {
      return EINVAL;  // without a text
    }
    uint64_t number = 0;
    if (const int error = CheckValue(resource, WithoutSpaces(value), number); error != 0) {
      return error;
    }
    if (resource != "MB") {
      if (const int error = CheckOverlap(name, resource, *id, number); error != 0) {
        return error;
      }
    }
    if (!staged[resource].emplace(*id, number).second) {
      return Fail(EINVAL, fmt::format("Duplicate domain {}", *id));
    }
  }
  return 0;
}

int ResctrlModel::CheckValue(const std::string& resource, std::string_view text, uint64_t& value) {
  const bool bandwidth = resource == "MB";
  const auto number = ParseNumber<uint64_t>(text, bandwidth ? 10 : 16);
  if (!number.has_value()) {
    return Fail(EINVAL, bandwidth ? fmt::format("Invalid MB value {}", text)
                                  : fmt::format("Non-hex character in the mask {}", text));
  }
  value = *number;
  if (bandwidth) {
    if (machine_.bandwidth_in_mbps) {
      return 0;
    }
    if (value < machine_.least_bandwidth || value > 100) {
      return Fail(EINVAL, fmt::format("MB value {} out of range [{},{}]", value,
                                      machine_.least_bandwidth, 100));
    }
    const uint64_t step = machine_.bandwidth_granularity;
    value = (value + step - 1) / step * step;
    return 0;
  }
  if (value == 0 || (value & ~machine_.l3_mask) != 0) {
    return Fail(EINVAL, "Mask out of range");
  }
  const int bits = std::popcount(value);
  if (std::countr_one(value >> std::countr_zero(value)) != bits) {
    return Fail(EINVAL, fmt::format("The mask {:x} has non-consecutive 1-bits", value));
  }
  return bits < machine_.least_bits
             ? Fail(EINVAL, fmt::format("Need at least {} bits in the mask", machine_.least_bits))
             : 0;
}

int ResctrlModel::CheckOverlap(const std::string& name, const std::string& resource, int id,
                               uint64_t mask) {
  for (const auto& [other, group] : groups_) {
    if (other == name || (group.schemata.at(resource).at(id) & mask) == 0) {
      continue;
    }
    if (group.mode == "exclusive") {
      return Fail(EINVAL, "Overlaps with exclusive group");
    }
    if (groups_.at(name).mode == "exclusive") {
      return Fail(EINVAL, "Overlaps with other group");
    }
  }
  return 0;
}

int ResctrlModel::WriteMode(const std::string& name, std::string_view text) {
  if (text != "shareable" && text != "exclusive") {
    return Fail(EINVAL, "Unknown or unsupported mode");
  }
  for (const auto& [other, group] : groups_) {
    for (const auto& [resource, values] : group.schemata) {
      for (const auto& [id, mask] : values) {
        if (text == "exclusive" && other != name && resource != "MB" &&
            (mask & groups_.at(name).schemata.at(resource).at(id)) != 0) {
          return Fail(EINVAL, "Schemata overlaps");
        }
      }
    }
  }
  groups_.at(name).mode = text;
  return 0;
}

}  // namespace qrm::test
