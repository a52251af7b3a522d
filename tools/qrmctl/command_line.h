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
inline constexpr char kDefaultConfig[] = "/etc/qrm/config.yaml";
inline constexpr char kControlSocketVariable[] = "QRM_CONTROL_SOCKET";

/// How results are printed.
struct OutputFormat {
  enum Kind { kTable, kWide, kJson, kYaml, kJsonPath, kSvg };

  // NOLINTNEXTLINE(google-explicit-constructor): a kind is a format by itself.
  OutputFormat(Kind of_kind) : kind(of_kind) {}

  /// For people, not for machines.
  bool IsText() const { return kind == kTable || kind == kWide; }

  Kind kind;
  std::string path;  ///< of kJsonPath
};

/// Which rows a listing shows, and in which order.
struct Listing {
  std::string pod_namespace;  ///< empty: all
  std::string sort_by;        ///< the header of a column; empty: as they come
};

/// The options of a command of `qrmctl`, declared first, then parsed: those that many commands have
/// are kept here, others go into the variables that they were declared with.
class CommandLine {
 public:
  /// `command` is its name, such as "pool set"; `summary` the first line of its help, `example` a
  /// line that can be typed.
  CommandLine(const std::string& command, const std::string& summary, const std::string& example);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// `-o`, `--output`: table, wide, json, yaml or jsonpath=TEMPLATE.
  CommandLine& Output();
  /// The same, or svg.
  CommandLine& OutputOrPicture();
  /// `--control-socket`; its default comes from the environment, then from kDefaultControlSocket.
  CommandLine& ControlSocket();
  /// A word without a dash, under the upper-case `name` that help shows.
  CommandLine& Optional(const std::string& name, std::string& value, const std::string& help);
  CommandLine& Required(const std::string& name, std::string& value, const std::string& help);
  /// One word or more.
  CommandLine& Several(const std::string& name, std::vector<std::string>& values,
                       const std::string& help);
  /// One word, more or none.
  CommandLine& Any(const std::string& name, std::vector<std::string>& values,
                   const std::string& help);
  /// `--name VALUE`, where help shows `what` in the value's place.
  CommandLine& Option(const std::string& name, std::string& value, const std::string& help,
                      const std::string& what);
  /// `-w`, `--watch`: RunQrmctl runs such a command again and again.
  CommandLine& Watch();
  /// `--sort-by`.
  CommandLine& Sorted();
  /// `-n`, `-A`, `--sort-by`.
  CommandLine& Listed();
  CommandLine& Flag(const std::string& name, bool& value, const std::string& help);

  /// What was declared, for completion and manual pages; kDescribe asks each command for it.
  static constexpr char kDescribe[] = "--describe";

  /// Absent when the command shall run, else the exit code: help was asked for (kDone, on `out`) or
  /// the words are wrong (kMisuse, with what to type on `err`).
  std::optional<int> Parse(const Args& args, std::ostream& out, std::ostream& err);

  /// What was parsed; the defaults of options that were not declared.
  const OutputFormat& format() const;
  const std::string& control_socket() const;
  const Listing& listing() const;

  /// Prints why the command failed; returns kFailed.
  int Fail(const Status& status, std::ostream& err) const;
  /// Prints what is wrong with the words and where to read more; returns kMisuse.
  int Misuse(const std::string& problem, std::ostream& err) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager::cli
