// Writes tar headers, and looks for secrets line by line.
#include "tools/qrmctl/archive.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/text.h"

namespace qrm::manager::cli {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostName = 99;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kChecksumSize = 8;

std::string Header(const ArchivedFile& file, std::time_t when) {
  QRM_CHECK(file.name.size() <= kMostName);
  std::string header(kBlock, '\0');
  const auto put = [&header](std::size_t at, std::string_view text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, file.name);
  put(100, "0000600");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", file.text.size()));
  put(136, fmt::format("{:011o}", static_cast<uint64_t>(when)));
  put(kChecksumAt, std::string(kChecksumSize, ' '));
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  uint32_t sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  put(kChecksumAt, fmt::format("{:06o}", sum));
  header[kChecksumAt + kChecksumSize - 2] = '\0';
  return header;
}

constexpr std::string_view kRemoved = "<removed>";

/// Replaces a private key in PEM by one word. True for a line within a key. `in_key` is kept from
/// line to line.
bool CutKey(std::string& line, bool& in_key) {
  constexpr std::string_view kEnd = "PRIVATE KEY-----";
  const std::size_t begin = line.find("-----BEGIN ");
  const std::size_t end = line.rfind(kEnd);
  const bool ends = line.find("-----END ") != std::string::npos && end != std::string::npos;
  if (in_key) {
    in_key = !ends;
    return true;
  }
  if (begin == std::string::npos || end == std::string::npos) {
    return false;
  }
  in_key = !ends;
  line.replace(begin, ends ? end + kEnd.size() - begin : std::string::npos, kRemoved);
  return false;
}

/// The end of the value that begins at `at`, and has to be replaced from there.
std::size_t EndOfValue(const std::string& line, std::size_t at) {
  const std::string_view stops = line[at] == '"' ? "\"" : line[at] == '\'' ? "'" : " ,;})&\t\"'";
  const std::size_t from = stops.size() == 1 ? at + 1 : at;
  const std::size_t end = std::min(line.find_first_of(stops, from), line.size());
  return stops.size() == 1 && end < line.size() ? end + 1 : end;
}

/// Replaces VALUE in `password: VALUE` and the like. A key that goes on, as token-file does, names
/// no secret.
void RemoveValues(std::string& line) {
  for (const std::string_view word :
       {"password", "passphrase", "secret", "token", "credential", "credentials", "private-key"}) {
    std::string lower = Lower(line);
    for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at)) {
      at += word.size();
      std::size_t colon = at < line.size() && (line[at] == '"' || line[at] == '\'') ? at + 1 : at;
      colon = line.find_first_not_of(' ', colon);
      if (colon == std::string::npos || (line[colon] != ':' && line[colon] != '=')) {
        continue;
      }
      const std::size_t value = line.find_first_not_of(" \t", colon + 1);
      if (value == std::string::npos) {
        return;
      }
      const bool quoted = line[value] == '"';
      line.replace(value, EndOfValue(line, value) - value,
                   quoted ? fmt::format("\"{}\"", kRemoved) : std::string(kRemoved));
      lower = Lower(line);
      at = value;
    }
  }
}

void RemoveBearers(std::string& line) {
  constexpr std::string_view kBearer = "bearer ";
  const std::size_t at = Lower(line).find(kBearer);
  if (at != std::string::npos && at + kBearer.size() < line.size()) {
    const std::size_t value = at + kBearer.size();
    line.replace(value, EndOfValue(line, value) - value, kRemoved);
  }
}

/// Replaces USER:PASSWORD in `https://USER:PASSWORD@HOST`.
void RemoveUsers(std::string& line) {
  constexpr std::string_view kScheme = "://";
  for (std::size_t at = line.find(kScheme); at != std::string::npos; at = line.find(kScheme, at)) {
    at += kScheme.size();
    const std::size_t end = line.find_first_of("@/ \t\"'", at);
    if (end != std::string::npos && line[end] == '@') {
      line.replace(at, end - at, kRemoved);
    }
  }
}

}  // namespace

std::string TarOf(const std::vector<ArchivedFile>& files, std::time_t when) {
  std::string archive;
  for (const ArchivedFile& file : files) {
    archive += Header(file, when) + file.text;
    archive.append((kBlock - archive.size() % kBlock) % kBlock, '\0');
  }
  return archive.append(2 * kBlock, '\0');
}

std::string WithoutSecrets(const std::string& text) {
  std::string cleaned;
  bool in_key = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!CutKey(line, in_key)) {
      RemoveValues(line);
      RemoveBearers(line);
      RemoveUsers(line);
      cleaned += line + (end < text.size() ? "\n" : "");
    }
  }
  return cleaned;
}

}  // namespace qrm::manager::cli
