// Reads one command's options, the same way for all commands.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "tools/qrmctl/command.h"

namespace qrm::manager::cli {

inline constexpr char kDefaultControlSocket[] = "/run/qrm/control.sock";
inline constexpr char kControlSocketVariable[] = "QRM_CONTROL_SOCKET";

enum class OutputFormat { kTable, kJson, kYaml };

/// The options of a command of `qrmctl`, declared first, then parsed into the variables they were
/// declared with.
class CommandLine {
 public:
  /// `command` is its name, such as "pool set"; `summary` the first line of its help, `example` a
  /// line that can be typed.
  CommandLine(const std::string& command, const std::string& summary, const std::string& example);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// `-o`, `--output`.
  CommandLine& Output(OutputFormat& format);
  /// `--control-socket`; its default comes from the environment, then from kDefaultControlSocket.
  CommandLine& ControlSocket(std::string& path);
  /// A word without a dash, under the upper-case `name` that help shows.
  CommandLine& Optional(const std::string& name, std::string& value, const std::string& help);
  CommandLine& Required(const std::string& name, std::string& value, const std::string& help);
  /// One word or more.
  CommandLine& Several(const std::string& name, std::vector<std::string>& values,
                       const std::string& help);
  /// `--name VALUE`, where help shows `what` in the value's place.
  CommandLine& Option(const std::string& name, std::string& value, const std::string& help,
                      const std::string& what);
  CommandLine& Flag(const std::string& name, bool& value, const std::string& help);

  /// Absent when the command shall run, else the exit code: help was asked for (kDone, on `out`) or
  /// the words are wrong (kMisuse, with what to type on `err`).
  std::optional<int> Parse(const Args& args, std::ostream& out, std::ostream& err);

  /// Prints why the command failed; returns kFailed.
  int Fail(const Status& status, std::ostream& err) const;
  /// Prints what is wrong with the words and where to read more; returns kMisuse.
  int Misuse(const std::string& problem, std::ostream& err) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager::cli
