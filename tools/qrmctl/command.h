// Every command of qrmctl: a function from arguments to two streams and an exit code.
#pragma once

#include <array>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qrm::manager::cli {

/// The words after the command's name.
using Args = std::vector<std::string>;
using Run = int (*)(const Args& args, std::ostream& out, std::ostream& err);

/// Exit codes: done; failed, with one sentence on `err`; misused, with what to type on `err`.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kMisuse = 2;

int RunStatus(const Args& args, std::ostream& out, std::ostream& err);
/// kFailed also for a node that lacks something.
int RunDoctor(const Args& args, std::ostream& out, std::ostream& err);
int RunBundle(const Args& args, std::ostream& out, std::ostream& err);
int RunPlugins(const Args& args, std::ostream& out, std::ostream& err);
int RunPluginsForget(const Args& args, std::ostream& out, std::ostream& err);
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
int RunPoolGet(const Args& args, std::ostream& out, std::ostream& err);
int RunPoolSet(const Args& args, std::ostream& out, std::ostream& err);
int RunPoolAdvise(const Args& args, std::ostream& out, std::ostream& err);
int RunClasses(const Args& args, std::ostream& out, std::ostream& err);
int RunClassSet(const Args& args, std::ostream& out, std::ostream& err);
int RunPolicyShow(const Args& args, std::ostream& out, std::ostream& err);
/// Both: kFailed also for a file that would be rejected.
int RunPolicyCheck(const Args& args, std::ostream& out, std::ostream& err);
int RunPolicyDiff(const Args& args, std::ostream& out, std::ostream& err);
int RunPermissions(const Args& args, std::ostream& out, std::ostream& err);
/// The state on disk, without qrmd.
int RunCheckpointVerify(const Args& args, std::ostream& out, std::ostream& err);
int RunCheckpointDump(const Args& args, std::ostream& out, std::ostream& err);
int RunCheckpointExport(const Args& args, std::ostream& out, std::ostream& err);
int RunCheckpointImport(const Args& args, std::ostream& out, std::ostream& err);
int RunCheckpointDowngrade(const Args& args, std::ostream& out, std::ostream& err);

/// About the cluster: the answers of qrm-scheduler.
int RunWhy(const Args& args, std::ostream& out, std::ostream& err);

/// A word behind a command's name that selects what runs.
struct Verb {
  std::string_view name;
  Run run;
};
inline constexpr Verb kPluginsVerbs[] = {{"forget", RunPluginsForget}};
inline constexpr Verb kPoolVerbs[] = {
    {"get", RunPoolGet}, {"set", RunPoolSet}, {"advise", RunPoolAdvise}};
inline constexpr Verb kClassVerbs[] = {{"set", RunClassSet}};
inline constexpr Verb kPolicyVerbs[] = {
    {"show", RunPolicyShow}, {"check", RunPolicyCheck}, {"diff", RunPolicyDiff}};
inline constexpr Verb kCheckpointVerbs[] = {{"verify", RunCheckpointVerify},
                                            {"dump", RunCheckpointDump},
                                            {"export", RunCheckpointExport},
                                            {"import", RunCheckpointImport},
                                            {"downgrade", RunCheckpointDowngrade}};

struct Command {
  std::string_view name;
  std::string_view summary;  ///< its line in the help on all of them
  Run run;                   ///< null: one of `verbs` must follow
  // NOLINTBEGIN(readability-redundant-member-init): entries leave them out, which GCC warns of else
  std::span<const Verb> verbs = {};
  // Of a command without `run`:
  std::string_view help = {};
  std::string_view examples = {};  ///< what to type instead of a wrong verb
  // NOLINTEND(readability-redundant-member-init)
};

/// In the order of the help.
inline constexpr std::array kCommands = {
    Command{"status", "whether qrmd is ready, and the state of each part of the node", RunStatus},
    Command{"doctor", "what the node lacks for qrmd, and each cure", RunDoctor},
    Command{"bundle", "write one archive for a bug report", RunBundle},
    Command{"plugins", "the resource plugins and their states", RunPlugins, kPluginsVerbs},
    Command{"pods", "admitted pods and their allocations", RunPods},
    Command{"top", "allocated CPUs and memory by NUMA node, pool and container", RunTop},
    Command{"topology", "the NUMA map and its users", RunTopology},
    Command{"cpus", "the containers on each CPU", RunCpus},
    Command{"explain", "why a pod was placed as it was, or rejected", RunExplain},
    Command{"events", "what changed on the node recently", RunEvents},
    Command{"refusals", "recently rejected containers, and why", RunRefusals},
    Command{"admit", "whether this node would admit a pod now", RunAdmit},
    Command{"play", "create a pod, show its allocations, and delete it", RunPlay},
    Command{"pool", "show and resize pools of CPUs", nullptr, kPoolVerbs,
            "Shows, resizes and advises pools of CPUs.\n\n"
            "Usage: qrmctl pool get [RESOURCE]\n"
            "       qrmctl pool set NAME=CPUS...\n"
            "       qrmctl pool advise --socket PATH [NAME=COUNT...]\n\n"
            "qrmctl pool VERB --help describes each verb.\n",
            "qrmctl pool get, or qrmctl pool set online=0-13"},
    Command{"classes", "QoS-class resources and their users", RunClasses},
    Command{"class", "change the class of a running container", nullptr, kClassVerbs,
            "Changes the QoS class of a container.\n\n"
            "Usage: qrmctl class set POD CONTAINER TYPE=CLASS\n"
            "       qrmctl class set POD TYPE=CLASS\n\n"
            "qrmctl class set --help describes it; qrmctl classes lists the classes.\n",
            "qrmctl class set POD CONTAINER blockio=slow"},
    Command{"policy", "the configuration of plugins, and what a file would change", nullptr,
            kPolicyVerbs,
            "Shows the configuration of plugins, and what a file would change.\n\n"
            "Usage: qrmctl policy show\n"
            "       qrmctl policy check FILE\n"
            "       qrmctl policy diff FILE\n\n"
            "qrmctl policy VERB --help describes each verb.\n",
            "qrmctl policy show, or qrmctl policy diff /etc/qrm/qrmd.yaml"},
    Command{"permissions", "what the pods of each namespace may ask for", RunPermissions},
    Command{"checkpoint", "check, show, export and import the state on disk", nullptr,
            kCheckpointVerbs,
            "Works on the state that qrmd keeps on disk.\n\n"
            "Usage: qrmctl checkpoint VERB\n\n"
            "Verbs:\n"
            "  verify      shows whether the checkpoint is sound\n"
            "  dump        prints the checkpoint\n"
            "  export      writes a kubelet_qrm_checkpoint\n"
            "  import      imports a kubelet_qrm_checkpoint\n"
            "  downgrade   converts the checkpoint of a newer release\n\n"
            "qrmctl checkpoint VERB --help describes each verb.\n",
            "qrmctl checkpoint verify, or qrmctl checkpoint --help"},
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
