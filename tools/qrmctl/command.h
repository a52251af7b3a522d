// What every command of qrmctl is: a function from arguments to two streams and an exit code.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace qrm::manager::cli {

/// The words after the command's name.
using Args = std::vector<std::string>;

/// Exit codes: done; failed, with one sentence on `err`; misused, with what to type on `err`.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kMisuse = 2;

int RunStatus(const Args& args, std::ostream& out, std::ostream& err);
int RunPlugins(const Args& args, std::ostream& out, std::ostream& err);
int RunPods(const Args& args, std::ostream& out, std::ostream& err);
int RunTopology(const Args& args, std::ostream& out, std::ostream& err);
int RunExplain(const Args& args, std::ostream& out, std::ostream& err);
/// `--dry-run` only. kFailed also for a pod that would be rejected.
int RunAdmit(const Args& args, std::ostream& out, std::ostream& err);
/// `get` and `set`.
int RunPool(const Args& args, std::ostream& out, std::ostream& err);
/// `verify`, `dump`, `export` and `import`: the state on disk, without qrmd.
int RunCheckpoint(const Args& args, std::ostream& out, std::ostream& err);

/// qrmctl itself: runs the command that `args` begin with.
int RunQrmctl(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace qrm::manager::cli
