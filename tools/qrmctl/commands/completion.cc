// qrmctl completion SHELL
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/qrmctl/catalog.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"

namespace qrm::manager::cli {
namespace {

/// The words that may follow a command, or a command and its verb.
using WordsByCommand = std::map<std::string, std::vector<std::string>>;

WordsByCommand AllWords() {
  WordsByCommand words;
  for (const CatalogEntry& entry : Catalog()) {
    std::vector<std::string>& own = words[entry.command];
    for (const CatalogOption& option : entry.options) {
      own.insert(own.end(), option.names.begin(), option.names.end());
      if (!option.word.empty()) {
        const std::vector<std::string> choices = ChoicesOf(option);
        own.insert(own.end(), choices.begin(), choices.end());
      }
    }
    if (const auto space = entry.command.find(' '); space != std::string::npos) {
      words[entry.command.substr(0, space)].push_back(entry.command.substr(space + 1));
    }
  }
  return words;
}

std::string CommandNames() {
  std::string names;
  for (const Command& command : kCommands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  }
  return names;
}

/// bash's `case` arms: the words behind each command.
std::string Arms() {
  std::string arms;
  for (const auto& [command, words] : AllWords()) {
    arms += fmt::format("    \"{}\") words=\"{}\" ;;\n", command, fmt::join(words, " "));
  }
  return arms;
}

std::string BashScript() {
  return fmt::format(
      R"(# Completes qrmctl in bash: source it, or install it as qrmctl below bash-completion/completions.
_qrmctl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  local command=${{COMP_WORDS[1]}} both="${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{0} --cluster --help --version" -- "$current"))
    return
  fi
  case $previous in
    -o|--output)
      [ "$command" != topology ] || words="svg"
      COMPREPLY=($(compgen -W "table wide json yaml jsonpath= $words" -- "$current"))
      return ;;
    -f|--control-socket|--state-dir|--xml|--fsroot|--directory)
      COMPREPLY=($(compgen -f -- "$current")); [ "$previous" = -f ] && [ "$command" = events ] || return ;;
  esac
  [ "$COMP_CWORD" -gt 2 ] || both=$command
  case $both in
{1}    *) both="" ;;
  esac
  if [ -z "$both" ]; then
    case $command in
{1}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _qrmctl qrmctl
)",
      CommandNames(), Arms());
}

/// zsh runs bash's function. A file of its fpath is the body of the first completion, which has to
/// answer, too.
std::string ZshScript() {
  return "#compdef qrmctl\nautoload -U +X bashcompinit && bashcompinit\n" + BashScript() +
         "[ \"${funcstack[1]}\" != _qrmctl ] || _bash_complete -F _qrmctl\n";
}

/// `text` between single quotes of fish.
std::string FishText(const std::string& text) {
  std::string quoted;
  for (const char c : text.substr(0, text.find('\n'))) {
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return "'" + quoted + "'";
}

std::string FishOption(const std::string& condition, const CatalogOption& option) {
  std::string line = "complete -c qrmctl -n " + condition;
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  const std::vector<std::string> choices = ChoicesOf(option);
  if (!choices.empty()) {
    line += fmt::format(" -{} -a '{}'", option.word.empty() ? "x" : "f", fmt::join(choices, " "));
  } else if (!option.value.empty()) {
    line += " -r";
  }
  return line + " -d " + FishText(option.help) + "\n";
}

std::string FishScript() {
  std::string script =
      "# Completes qrmctl in fish: install it as qrmctl.fish below fish/vendor_completions.d.\n"
      "complete -c qrmctl -f\n";
  for (const Command& command : kCommands) {
    script += fmt::format("complete -c qrmctl -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          FishText(std::string(command.summary)));
  }
  for (const CatalogEntry& entry : Catalog()) {
    const auto space = entry.command.find(' ');
    const std::string command = entry.command.substr(0, space);
    std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", command);
    if (space != std::string::npos) {
      const std::string verb = entry.command.substr(space + 1);
      script += fmt::format("complete -c qrmctl -n {} -a {} -d {}\n", condition, verb,
                            FishText(entry.summary));
      condition = fmt::format(
          "'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'", command, verb);
    }
    for (const CatalogOption& option : entry.options) {
      if (!option.names.empty() || !ChoicesOf(option).empty()) {
        script += FishOption(condition, option);
      }
    }
  }
  return script;
}

}  // namespace

int RunCompletion(const Args& args, std::ostream& out, std::ostream& err) {
  std::string shell;
  CommandLine line("completion",
                   "Prints a script with which a shell completes commands, verbs and options.",
                   "source <(qrmctl completion bash)");
  line.Required("SHELL", shell, "bash, zsh or fish");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (shell == "bash") {
    out << BashScript();
  } else if (shell == "zsh") {
    out << ZshScript();
  } else if (shell == "fish") {
    out << FishScript();
  } else {
    return line.Misuse(fmt::format("there is no script for \"{}\"; use bash, zsh or fish", shell),
                       err);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
