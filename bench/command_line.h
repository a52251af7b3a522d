// The words of a benchmark program's command line, and where the other programs are.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <limits.h>
#include <unistd.h>

namespace qrm::bench {

struct CommandLine {
  bool smoke = false;                         ///< --smoke: a short run without a verdict
  std::map<std::string, std::string> values;  ///< by their options, such as "--pods"

  std::string Text(const std::string& option) const {
    const auto found = values.find(option);
    return found == values.end() ? "" : found->second;
  }
  template <std::integral T>
  T Number(const std::string& option, T otherwise) const {
    return values.contains(option) ? static_cast<T>(std::stoll(values.at(option))) : otherwise;
  }
  /// The exit status of a program that `reached` its targets.
  int StatusOf(bool reached) const { return reached || smoke ? EXIT_SUCCESS : EXIT_FAILURE; }
};

/// Ends the program at a word that is neither one of `options`, each of which has a value, nor one
/// of `flags`, which have none.
inline CommandLine ReadCommandLine(int argc, char** argv,
                                   const std::vector<std::string_view>& options = {},
                                   const std::vector<std::string_view>& flags = {}) {
  const auto is_one_of = [](const std::vector<std::string_view>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  CommandLine read;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--smoke") {
      read.smoke = true;
    } else if (is_one_of(flags, word)) {
      read.values[std::string(word)] = "";
    } else if (i + 1 < argc && is_one_of(options, word)) {
      read.values[std::string(word)] = argv[++i];
    } else {
      std::string usage = std::string("usage: ") + argv[0] + " [--smoke]";
      for (const std::string_view option : options) {
        usage.append(" [").append(option).append(" VALUE]");
      }
      for (const std::string_view flag : flags) {
        usage.append(" [").append(flag).append("]");
      }
      std::fputs(usage.append("\n").c_str(), stderr);
      std::exit(2);
    }
  }
  return read;
}

/// The directory of the built programs.
inline std::string BinDir() {
  std::string path(PATH_MAX, '\0');
  path.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::readlink("/proc/self/exe", path.data(), path.size()), 0)));
  return path.substr(0, path.rfind("/bench/")) + "/bin";
}

}  // namespace qrm::bench
