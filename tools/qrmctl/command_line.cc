// Parses options with CLI11, which no other file of qrmctl knows.
#include "tools/qrmctl/command_line.h"

#include <cstdlib>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include "api/base/foreign_text.h"

namespace qrm::manager::cli {
namespace {

const std::map<std::string, OutputFormat> kFormats = {
    {"table", OutputFormat::kTable}, {"json", OutputFormat::kJson}, {"yaml", OutputFormat::kYaml}};

std::string DefaultControlSocket() {
  const char* named = std::getenv(kControlSocketVariable);
  return named != nullptr && *named != '\0' ? named : kDefaultControlSocket;
}

}  // namespace

struct CommandLine::Impl {
  Impl(std::string command_name, const std::string& summary, std::string command_example)
      : command(std::move(command_name)),
        example(std::move(command_example)),
        app(summary, "qrmctl " + command) {}

  const std::string command;
  const std::string example;
  CLI::App app;
};

CommandLine::CommandLine(const std::string& command, const std::string& summary,
                         const std::string& example)
    : impl_(std::make_unique<Impl>(command, summary, example)) {
  impl_->app.footer("Example:\n  " + example);
  impl_->app.get_formatter()->column_width(36);
}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::Output(OutputFormat& format) {
  impl_->app
      .add_option_function<std::string>(
          "-o,--output",
          [&format](const std::string& text) {
            const auto found = kFormats.find(text);
            if (found == kFormats.end()) {
              throw CLI::ValidationError("-o",
                                         "\"" + text + "\" is no format; use table, json or yaml");
            }
            format = found->second;
          },
          "table, json or yaml (default: table)")
      ->type_name("FORMAT");
  return *this;
}

CommandLine& CommandLine::ControlSocket(std::string& path) {
  path = DefaultControlSocket();
  impl_->app
      .add_option("--control-socket", path,
                  std::string("qrmd's socket (default: $") + kControlSocketVariable + " or " +
                      kDefaultControlSocket + ")")
      ->type_name("PATH");
  return *this;
}

CommandLine& CommandLine::Optional(const std::string& name, std::string& value,
                                   const std::string& help) {
  impl_->app.add_option(name, value, help)->type_name("");
  return *this;
}

CommandLine& CommandLine::Required(const std::string& name, std::string& value,
                                   const std::string& help) {
  impl_->app.add_option(name, value, help)->type_name("")->required();
  return *this;
}

CommandLine& CommandLine::Several(const std::string& name, std::vector<std::string>& values,
                                  const std::string& help) {
  impl_->app.add_option(name, values, help)->type_name("")->required();
  return *this;
}

CommandLine& CommandLine::Option(const std::string& name, std::string& value,
                                 const std::string& help, const std::string& what) {
  impl_->app.add_option(name, value, help)->type_name(what);
  return *this;
}

CommandLine& CommandLine::Flag(const std::string& name, bool& value, const std::string& help) {
  impl_->app.add_flag(name, value, help);
  return *this;
}

std::optional<int> CommandLine::Parse(const Args& args, std::ostream& out, std::ostream& err) {
  try {
    impl_->app.parse(Args(args.rbegin(), args.rend()));  // CLI11 takes them last first
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    out << impl_->app.help();
    return kDone;
  } catch (const CLI::ParseError& error) {
    return Misuse(error.what(), err);
  }
}

int CommandLine::Fail(const Status& status, std::ostream& err) const {
  err << "qrmctl " << impl_->command << ": " << Escaped(MessageOf(status)) << '\n';
  return kFailed;
}

int CommandLine::Misuse(const std::string& problem, std::ostream& err) const {
  err << "qrmctl " << impl_->command << ": " << problem << "; try: " << impl_->example
      << ", or qrmctl " << impl_->command << " --help\n";
  return kMisuse;
}

}  // namespace qrm::manager::cli
