// Every command of qrmctl: a function from arguments to two streams and an exit code.
#pragma once

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace qrm::manager::cli {

/// The words after the command's name.
using Args = std::vector<std::string>;

/// Exit codes: done; failed, with one sentence on `err`; misused, with what to type on `err`.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kMisuse = 2;

int RunStatus(const Args& args, std::ostream& out, std::ostream& err);
/// Also `forget`.
int RunPlugins(const Args& args, std::ostream& out, std::ostream& err);
int RunPods(const Args& args, std::ostream& out, std::ostream& err);
int RunTopology(const Args& args, std::ostream& out, std::ostream& err);
int RunExplain(const Args& args, std::ostream& out, std::ostream& err);
int RunRefusals(const Args& args, std::ostream& out, std::ostream& err);
/// `--dry-run` only. kFailed also for a pod that would be rejected.
int RunAdmit(const Args& args, std::ostream& out, std::ostream& err);
/// kFailed also for a pod that was refused.
int RunPlay(const Args& args, std::ostream& out, std::ostream& err);
int RunEvents(const Args& args, std::ostream& out, std::ostream& err);
int RunTop(const Args& args, std::ostream& out, std::ostream& err);
int RunLogLevel(const Args& args, std::ostream& out, std::ostream& err);
/// Scripts that complete commands and options in shells.
int RunCompletion(const Args& args, std::ostream& out, std::ostream& err);
/// Manual pages.
int RunMan(const Args& args, std::ostream& out, std::ostream& err);
/// `get`, `set` and `advise`.
int RunPool(const Args& args, std::ostream& out, std::ostream& err);
/// What follows `pool advise`.
int RunPoolAdvise(const Args& args, std::ostream& out, std::ostream& err);
int RunClasses(const Args& args, std::ostream& out, std::ostream& err);
/// `set`.
int RunClass(const Args& args, std::ostream& out, std::ostream& err);
/// `show`, `check` and `diff`. kFailed also for a file that would be refused.
int RunPolicy(const Args& args, std::ostream& out, std::ostream& err);
int RunPermissions(const Args& args, std::ostream& out, std::ostream& err);
/// `verify`, `dump`, `export`, `import` and `downgrade`: the state on disk, without qrmd.
int RunCheckpoint(const Args& args, std::ostream& out, std::ostream& err);

/// Of the cluster: what qrm-scheduler says.
int RunWhy(const Args& args, std::ostream& out, std::ostream& err);

struct Command {
  std::string_view name;
  std::string_view summary;  ///< its line in the help on all of them
  int (*run)(const Args& args, std::ostream& out, std::ostream& err);
  /// The words that may stand first behind the name, with a space between them; "." stands for none
  /// of them.
  std::string_view verbs = ".";
};

/// In the order of the help.
inline constexpr std::array kCommands = {
    Command{"status", "whether qrmd is ready, and what it does", RunStatus},
    Command{"plugins", "the resource plugins and how they fare", RunPlugins, ". forget"},
    Command{"pods", "admitted pods and what their containers hold", RunPods},
    Command{"top", "how much of nodes and pools is given out, and to whom", RunTop},
    Command{"topology", "the NUMA map and who uses what", RunTopology},
    Command{"explain", "why a pod was placed as it was, or rejected", RunExplain},
    Command{"events", "what was decided lately", RunEvents},
    Command{"refusals", "who was refused a place lately, and why", RunRefusals},
    Command{"admit", "what would become of a pod if it came now", RunAdmit},
    Command{"play", "make a pod, show what it was given, and remove it", RunPlay},
    Command{"pool", "show and resize pools of CPUs", RunPool, "get set advise"},
    Command{"classes", "QoS-class resources and who has how many", RunClasses},
    Command{"class", "give a running container another class", RunClass, "set"},
    Command{"policy", "what plugins are configured to do, and what a file would change", RunPolicy,
            "show check diff"},
    Command{"permissions", "which pods may ask for what", RunPermissions},
    Command{"checkpoint", "check, show, export and import the state on disk", RunCheckpoint,
            "verify dump export import downgrade"},
    Command{"log-level", "show or change which lines qrmd logs", RunLogLevel},
    Command{"completion", "make shells complete commands and options", RunCompletion},
    Command{"man", "manual pages of the commands", RunMan},
};

/// About the cluster, after `--cluster`; the others are about the node.
inline constexpr std::array kClusterCommands = {
    Command{"why", "why a pod waits for a node", RunWhy},
};

/// qrmctl itself: runs the command that `args` begin with.
int RunQrmctl(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace qrm::manager::cli
