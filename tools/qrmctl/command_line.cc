// Parses options with CLI11, which no other file of qrmctl knows.
#include "tools/qrmctl/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/json_path.h"

namespace qrm::manager::cli {
namespace {

constexpr std::pair<std::string_view, OutputFormat::Kind> kFormats[] = {
    {"table", OutputFormat::kTable}, {"wide", OutputFormat::kWide}, {"json", OutputFormat::kJson},
    {"yaml", OutputFormat::kYaml},   {"svg", OutputFormat::kSvg},
};
using Formats = std::span<const std::pair<std::string_view, OutputFormat::Kind>>;

std::string WordsOf(Formats formats) {
  std::string words;
  for (const auto& [word, kind] : formats) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
  }
  return words;
}

/// Errors: what is wrong with `text`.
Status ReadFormat(const std::string& text, Formats formats, OutputFormat& format) {
  constexpr std::string_view kPath = "jsonpath=";
  if (text.starts_with(kPath)) {
    format.kind = OutputFormat::kJsonPath;
    format.path = text.substr(kPath.size());
    return EvaluateJsonPath(format.path, Document()).status();
  }
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const auto& each) { return each.first == text; });
  if (found == formats.end()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "\"{}\" is not a format; use {} or jsonpath=TEMPLATE", text, WordsOf(formats));
  }
  format.kind = found->second;
  return OkStatus();
}

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

  /// Each option and word by what help says of it.
  Document Describe();
  void AddOutput(Formats some);

  const std::string command;
  const std::string example;
  CLI::App app;
  Formats formats;
  OutputFormat format = OutputFormat::kTable;
  std::string control_socket = DefaultControlSocket();
  Listing listing;
  bool watch = false;
};

Document CommandLine::Impl::Describe() {
  Document options = Document::array();
  for (const CLI::Option* option : app.get_options()) {
    Document names = Document::array();
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    const std::string word = option->get_positional() ? option->get_name(true) : "";
    options.push_back({{"names", std::move(names)},
                       {"word", word},
                       {"value", option->get_expected_max() == 0 ? "" : option->get_type_name()},
                       {"required", option->get_required()},
                       {"help", option->get_description()}});
  }
  return {{"command", command},
          {"summary", app.get_description()},
          {"example", example},
          {"options", std::move(options)}};
}

CommandLine::CommandLine(const std::string& command, const std::string& summary,
                         const std::string& example)
    : impl_(std::make_unique<Impl>(command, summary, example)) {
  impl_->app.footer("Example:\n  " + example);
  impl_->app.get_formatter()->column_width(36);
}

CommandLine::~CommandLine() = default;

void CommandLine::Impl::AddOutput(Formats some) {
  formats = some;
  app.add_option_function<std::string>(
         "-o,--output",
         [this](const std::string& text) {
           if (const Status read = ReadFormat(text, formats, format); !read.ok()) {
             throw CLI::ValidationError("-o", MessageOf(read));
           }
         },
         WordsOf(some) + " or jsonpath=TEMPLATE (default: table)")
      ->type_name("FORMAT");
}

CommandLine& CommandLine::Output() {
  impl_->AddOutput(Formats(kFormats).first(std::size(kFormats) - 1));
  return *this;
}

CommandLine& CommandLine::OutputOrPicture() {
  impl_->AddOutput(kFormats);
  return *this;
}

CommandLine& CommandLine::ControlSocket() {
  impl_->app
      .add_option("--control-socket", impl_->control_socket,
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

CommandLine& CommandLine::Any(const std::string& name, std::vector<std::string>& values,
                              const std::string& help) {
  impl_->app.add_option(name, values, help)->type_name("");
  return *this;
}

CommandLine& CommandLine::Option(const std::string& name, std::string& value,
                                 const std::string& help, const std::string& what) {
  impl_->app.add_option(name, value, help)->type_name(what);
  return *this;
}

CommandLine& CommandLine::Watch() {
  impl_->app.add_flag("-w,--watch", impl_->watch, "print it again whenever it changes");
  return *this;
}

CommandLine& CommandLine::Sorted() {
  impl_->app.add_option("--sort-by", impl_->listing.sort_by, "sort by this column of the table")
      ->type_name("COLUMN");
  return *this;
}

CommandLine& CommandLine::Listed() {
  std::string& pod_namespace = impl_->listing.pod_namespace;
  auto* const one =
      impl_->app.add_option("-n,--namespace", pod_namespace, "only pods of this namespace");
  one->type_name("NAMESPACE");
  impl_->app
      .add_flag_callback(
          "-A,--all-namespaces", [&pod_namespace] { pod_namespace.clear(); },
          "pods of all namespaces (the default)")
      ->excludes(one);
  return Sorted();
}

CommandLine& CommandLine::Flag(const std::string& name, bool& value, const std::string& help) {
  impl_->app.add_flag(name, value, help);
  return *this;
}

std::optional<int> CommandLine::Parse(const Args& args, std::ostream& out, std::ostream& err) {
  if (args == Args{kDescribe}) {
    out << impl_->Describe().dump() << '\n';
    return kDone;
  }
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

const OutputFormat& CommandLine::format() const {
  return impl_->format;
}

const std::string& CommandLine::control_socket() const {
  return impl_->control_socket;
}

const Listing& CommandLine::listing() const {
  return impl_->listing;
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
