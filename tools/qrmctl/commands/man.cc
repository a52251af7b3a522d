// qrmctl man
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "manager/daemon/man_page.h"
#include "tools/qrmctl/catalog.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"

namespace qrm::manager::cli {
namespace {

/// "qrmctl-pool-set"; of "--cluster why" "qrmctl-cluster-why".
std::string PageName(const std::string& command) {
  std::string name = "qrmctl-" + command.substr(command.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string Heading(const std::string& page_name) {
  std::string upper = page_name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"\" \"qrm {}\" \"qrm\"\n", upper, QRM_VERSION);
}

/// The first statement of `text`, on one line.
std::string Begin(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto stop = std::min(text.find(". "), text.find("; "));
  text = text.substr(0, stop);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

/// "qrmctl pool set [OPTIONS] NAME=CPUS".
std::string Synopsis(const CatalogEntry& entry) {
  std::string text = "qrmctl " + entry.command + " [OPTIONS]";
  for (const CatalogOption& option : entry.options) {
    if (!option.word.empty()) {
      text += option.required ? " " + option.word : " [" + option.word + "]";
    }
  }
  return text;
}

std::string OptionText(const CatalogOption& option) {
  const std::string name = option.word.empty()
                               ? fmt::format("{}{}{}", fmt::join(option.names, ", "),
                                             option.value.empty() ? "" : " ", option.value)
                               : option.word;
  return fmt::format(".TP\n.B {}\n{}\n", Roff(name), Roff(option.help));
}

std::string PageOf(const CatalogEntry& entry) {
  const std::string name = PageName(entry.command);
  std::string page =
      Heading(name) +
      fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
                  Roff(name), Roff(Begin(entry.summary)), Roff(Synopsis(entry)),
                  Roff(entry.summary));
  for (const CatalogOption& option : entry.options) {
    page += OptionText(option);
  }
  return page + fmt::format(
                    ".SH EXIT STATUS\n0 done, 1 failed, 2 misused.\n.SH EXAMPLES\n.nf\n{}\n.fi\n"
                    ".SH SEE ALSO\n.BR qrmctl (1)\n",
                    Roff(entry.example));
}

std::string MainPage() {
  std::string page =
      Heading("qrmctl") +
      ".SH NAME\nqrmctl \\- shows and controls the QoS resource manager of this node\n"
      ".SH SYNOPSIS\n.B qrmctl\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n.SH COMMANDS\n";
  for (const Command& command : kCommands) {
    page += fmt::format(".TP\n.B {}\n{}\n", Roff(std::string(command.name)),
                        Roff(std::string(command.summary)));
  }
  for (const Command& command : kClusterCommands) {
    page += fmt::format(".TP\n.B \\-\\-cluster {}\n{}\n", Roff(std::string(command.name)),
                        Roff(std::string(command.summary)));
  }
  page +=
      ".SH ENVIRONMENT\n.TP\n.B QRM_CONTROL_SOCKET\nqrmd's socket, unless "
      "\\-\\-control\\-socket names it.\n"
      ".SH EXIT STATUS\n0 done, 1 failed, 2 misused.\n.SH SEE ALSO\n.BR qrmd (8),\n";
  std::string others;
  for (const CatalogEntry& entry : Catalog()) {
    others +=
        fmt::format("{}.BR {} (1)", others.empty() ? "" : ",\n", Roff(PageName(entry.command)));
  }
  page += others;
  page += '\n';
  return page;
}

/// By the name of the file.
std::map<std::string, std::string> AllPages() {
  std::map<std::string, std::string> pages = {{"qrmctl.1", MainPage()}};
  for (const CatalogEntry& entry : Catalog()) {
    pages.emplace(PageName(entry.command) + ".1", PageOf(entry));
  }
  return pages;
}

Status WriteAll(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const auto& [name, page] : AllPages()) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (std::ofstream file(path); !(file << page << std::flush)) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot write {}: it cannot be opened or its disk is full; name a directory "
                    "that this user may write into",
                    path);
    }
  }
  return OkStatus();
}

}  // namespace

int RunMan(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  std::vector<std::string> words;
  CommandLine line(
      "man",
      "Prints the manual page of a command for man(1), or of qrmctl without a command;\n"
      "--directory writes all pages.",
      "qrmctl man pool set | man -l -");
  line.Option("--directory", directory, "write all pages there", "DIRECTORY")
      .Any("COMMAND", words, "the command, and its verb");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (!directory.empty()) {
    const Status written = WriteAll(directory);
    return written.ok() ? kDone : line.Fail(written, err);
  }
  const auto pages = AllPages();
  const std::string name =
      words.empty() ? "qrmctl.1" : fmt::format("qrmctl-{}.1", fmt::join(words, "-"));
  const auto page = pages.find(name);
  if (page == pages.end()) {
    return line.Misuse(fmt::format("there is no page of {}", fmt::join(words, " ")), err);
  }
  out << page->second;
  return kDone;
}

}  // namespace qrm::manager::cli
