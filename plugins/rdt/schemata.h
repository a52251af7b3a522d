// The resources of a resctrl group: masks of caches and shares of memory bandwidth, as values and
// as the kernel's lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace qrm::rdt {

/// Resource ("L3", "L3CODE", "MB") -> cache id -> mask, or share of bandwidth.
using Schemata = std::map<std::string, std::map<int, uint64_t>>;

/// Reads the lines of a schemata file; lines of another form than `NAME:ID=VALUE;...` are skipped.
/// Source: Linux Documentation/filesystems/resctrl.rst, "Schemata files - general concepts".
Schemata ParseSchemata(std::string_view text);

/// One line for each resource. Each ends in a newline, which the kernel requires.
std::string ToString(const Schemata& schemata);

/// The same on one line, for messages: "L3:0=fff;1=fff MB:0=50;1=50".
std::string OneLine(const Schemata& schemata);

}  // namespace qrm::rdt
