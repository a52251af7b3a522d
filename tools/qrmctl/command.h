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
/// kFailed also for a node that lacks something.
int RunDoctor(const Args& args, std::ostream& out, std::ostream& err);
int RunBundle(const Args& args, std::ostream& out, std::ostream& err);
/// Also `forget`.
int RunPlugins(const Args& args, std::ostream& out, std::ostream& err);
int RunPods(const Args& args, std::ostream& out, std::ostream& err);
int RunTopology(const Args& args, std::ostream& out, std::ostream& err);
int RunCpus(const Args& args, std::ostream& out, std::ostream& err);
int RunExplain(const Args& args, std::ostream& out, std::ostream& err);
int RunRefusals(const Args& args, std::ostream& out, std::ostream& err);
/// `--dry-run` only. kFailed also for a pod that would be rejected.
int RunAdmit(const Args& args, std::ostream& out, std::ostream& err);
/// kFailed also for a pod that was rejected.
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
/// `show`, `check` and `diff`. kFailed also for a file that would be rejected.
int RunPolicy(const Args& args, std::ostream& out, std::ostream& err);
int RunPermissions(const Args& args, std::ostream& out, std::ostream& err);
/// `verify`, `dump`, `export`, `import` and `downgrade`: the state on disk, without qrmd.
int RunCheckpoint(const Args& args, std::ostream& out, std::ostream& err);

/// About the cluster: the answers of qrm-scheduler.
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
    Command{"status", "whether qrmd is ready, and the state of each part of the node", RunStatus},
    Command{"doctor", "what the node lacks for qrmd, and each cure", RunDoctor},
    Command{"bundle", "write one archive for a bug report", RunBundle},
    Command{"plugins", "the resource plugins and their states", RunPlugins, ". forget"},
    Command{"pods", "admitted pods and their allocations", RunPods},
    Command{"top", "allocated CPUs and memory by NUMA node, pool and container", RunTop},
    Command{"topology", "the NUMA map and its users", RunTopology},
    Command{"cpus", "the containers on each CPU", RunCpus},
    Command{"explain", "why a pod was placed as it was, or rejected", RunExplain},
    Command{"events", "what changed on the node recently", RunEvents},
    Command{"refusals", "recently rejected containers, and why", RunRefusals},
    Command{"admit", "whether this node would admit a pod now", RunAdmit},
    Command{"play", "create a pod, show its allocations, and delete it", RunPlay},
    Command{"pool", "show and resize pools of CPUs", RunPool, "get set advise"},
    Command{"classes", "QoS-class resources and their users", RunClasses},
    Command{"class", "change the class of a running container", RunClass, "set"},
    Command{"policy", "the configuration of plugins, and what a file would change", RunPolicy,
            "show check diff"},
    Command{"permissions", "what the pods of each namespace may ask for", RunPermissions},
    Command{"checkpoint", "check, show, export and import the state on disk", RunCheckpoint,
            "verify dump export import downgrade"},
    Command{"log-level", "show or change which lines qrmd logs", RunLogLevel},
    Command{"completion", "print completion scripts for shells", RunCompletion},
    Command{"man", "manual pages of the commands", RunMan},
};

/// About the cluster, after `--cluster`; the others are about the node.
inline constexpr std::array kClusterCommands = {
    Command{"why", "why a pod waits for a node", RunWhy},
};

/// qrmctl itself: runs the command that `args` begin with.
int RunQrmctl(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace qrm::manager::cli
