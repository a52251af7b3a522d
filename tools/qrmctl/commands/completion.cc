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

/// What may follow a command, or a command and its verb.
struct Following {
  std::vector<std::string> words;
  std::string named;  ///< as NamedBy
};

std::map<std::string, Following> AllFollowing() {
  std::map<std::string, Following> following;
  for (const CatalogEntry& entry : Catalog()) {
    Following& own = following[entry.command];
    for (const CatalogOption& option : entry.options) {
      own.words.insert(own.words.end(), option.names.begin(), option.names.end());
      if (!option.word.empty()) {
        const std::vector<std::string> choices = ChoicesOf(option);
        own.words.insert(own.words.end(), choices.begin(), choices.end());
        own.named += NamedBy(entry, option);
      }
    }
    if (const auto space = entry.command.find(' '); space != std::string::npos) {
      following[entry.command.substr(0, space)].words.push_back(entry.command.substr(space + 1));
    }
  }
  return following;
}

/// Prints what a name stands for, one a line; bash and fish run it with qrmctl's own templates.
struct Names {
  const char* named;
  const char* command;
};
constexpr Names kNames[] = {
    {"pods", R"(qrmctl pods -o jsonpath='{range .pods[*]}{.name}{"\n"}{end}')"},
    {"namespaces", R"(qrmctl pods -o jsonpath='{range .pods[*]}{.namespace}{"\n"}{end}')"},
    {"pools", R"(qrmctl pool get -o jsonpath='{range .pools[*]}{.name}={"\n"}{end}')"},
    {"plugins", R"(qrmctl plugins -o jsonpath='{range .plugins[*]}{.resource_name}{"\n"}{end}')"},
};

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
  for (const auto& [command, own] : AllFollowing()) {
    arms += fmt::format("    \"{}\") words=\"{}\" named={} ;;\n", command,
                        fmt::join(own.words, " "), own.named);
  }
  return arms;
}

/// bash's function that prints the names of what its argument says.
std::string BashNames() {
  std::string script = "_qrmctl_names() {\n  case $1 in\n";
  for (const Names& names : kNames) {
    script += fmt::format("    {}) {} ;;\n", names.named, names.command);
  }
  return script + "  esac 2>/dev/null\n}\n";
}

std::string BashScript() {
  return fmt::format(
      R"bash(# Completes qrmctl in bash: source it, or install it as qrmctl below bash-completion/completions.
{2}_qrmctl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words="" named=""
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
    -n|--namespace)
      COMPREPLY=($(compgen -W "$(_qrmctl_names namespaces)" -- "$current")); return ;;
    --resource)
      COMPREPLY=($(compgen -W "$(_qrmctl_names plugins)" -- "$current")); return ;;
    -f|--config|--control-socket|--log|--state-dir|--xml|--fsroot|--directory)
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
  [[ -z $named || $current == -* ]] || words="$words $(_qrmctl_names $named)"
  [ "$named" != pools ] || compopt -o nospace 2>/dev/null
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _qrmctl qrmctl
)bash",
      CommandNames(), Arms(), BashNames());
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

/// What fish offers for the option's value or the word; empty: nothing.
std::string FishValues(const CatalogEntry& entry, const CatalogOption& option) {
  if (const std::string named = NamedBy(entry, option); !named.empty()) {
    return fmt::format("(__qrmctl_names {})", named);
  }
  return fmt::format("{}", fmt::join(ChoicesOf(option), " "));
}

/// fish's function that prints the names of what its argument says.
std::string FishNames() {
  std::string script = "function __qrmctl_names\n    switch $argv[1]\n";
  for (const Names& names : kNames) {
    script +=
        fmt::format("        case {}\n            {} 2>/dev/null\n", names.named, names.command);
  }
  return script + "    end\nend\n";
}

std::string FishOption(const std::string& condition, const CatalogEntry& entry,
                       const CatalogOption& option) {
  std::string line = "complete -c qrmctl -n " + condition;
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (const std::string values = FishValues(entry, option); !values.empty()) {
    line += fmt::format(" -{} -a '{}'", option.word.empty() ? "x" : "f", values);
  } else if (!option.value.empty()) {
    line += " -r";
  }
  return line + " -d " + FishText(option.help) + "\n";
}

std::string FishScript() {
  std::string script =
      "# Completes qrmctl in fish: install it as qrmctl.fish below fish/vendor_completions.d.\n"
      "complete -c qrmctl -f\n" +
      FishNames();
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
      if (!option.names.empty() || !FishValues(entry, option).empty()) {
        script += FishOption(condition, entry, option);
      }
    }
  }
  return script;
}

}  // namespace

int RunCompletion(const Args& args, std::ostream& out, std::ostream& err) {
  std::string shell;
  CommandLine line(
      "completion",
      "Prints a script with which a shell completes commands, verbs, options and names.",
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
