// The interface between qrmd and a type of QoS-class resources: which classes it has, and how a
// container gets, changes and keeps a class.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::sdk {

/// Whether each container has a class of the type, or the pod as a whole.
enum class ClassLevel : uint8_t { kContainer, kPod };

// NOLINTBEGIN(readability-redundant-member-init): see api/resource.h
/// One class, as defined by its type's configuration and the kernel. qrmd's configuration, in the
/// same form for all types, says which pods may have it, how many, and which pods get it by
/// default.
struct ClassInfo {
  std::string name{};
  std::string definition{};  ///< the kernel's values where they can be read, on one line
  std::string problem{};     ///< why no container can get it now, and what to do; empty: none
  uint64_t capacity = 0;     ///< how many users the kernel can separate at a time; 0: any number
  /// The cgroup files that it sets or resets: a class of another type that sets one of them cannot
  /// be given beside it.
  std::set<std::string> files{};

  bool operator==(const ClassInfo&) const = default;
};

/// A type's state at one moment.
struct ClassType {
  std::string name{};  ///< "blockio", or for a third-party type "lanes.example.com"; unique
  ClassLevel level = ClassLevel::kContainer;
  bool is_mutable = true;  ///< a running container can get another class
  std::vector<ClassInfo> classes{};
  std::string problem{};  ///< why no class is available, and what to do; empty: none
  uint64_t repairs = 0;   ///< how often it corrected drift in what all classes share

  bool operator==(const ClassType&) const = default;
};

/// What the runtime creates a container with, so that it has its class from its first instruction.
/// Types leave empty what they do not set.
struct ClassOptions {
  std::string rdt_class{};  ///< a resctrl group that exists
  StringMap unified{};      ///< cgroup v2 file -> value
  std::optional<int64_t> oom_score_adj{};

  bool operator==(const ClassOptions&) const = default;
};
// NOLINTEND(readability-redundant-member-init)

/// A container that the runtime has created and not removed. It may end at any time, also while a
/// provider works on it. That is not an error, except kNotFound from a call that reads its state.
struct ClassTarget {
  ContainerKey key;        ///< for a pod-level class: with an empty container
  std::string runtime_id;  ///< a recreated container is another target
  /// As the runtime names it: "/kubepods/pod1/c1", or systemd's "slice:prefix:name". For a pod, its
  /// parent cgroup. api/base/cgroup.h finds its directories.
  std::string cgroups_path;

  bool operator==(const ClassTarget&) const = default;
};

/// A number that a provider reads about a class, such as its occupancy of a cache.
struct ClassReading {
  std::string class_name;
  std::string quantity;  ///< with the unit; few different values: "llc_occupancy_bytes"
  double value = 0;

  bool operator==(const ClassReading&) const = default;
};

/// A type of QoS-class resources. qrmd creates it from its configuration and owns it.
/// manager/classes calls it; only manager/classes decides and records which container has which
/// class.
///
/// Threads: List and Resolve are called by any thread, also while another function runs, and must
/// answer from memory at once. All other functions may wait for the kernel. They are called on the
/// provider's dedicated thread, one call at a time, without a lock. A slow call delays only
/// containers that start with, or change, a class of this type.
///
/// Ownership: a provider keeps nothing on disk. What it has in the kernel (groups, limits) it finds
/// there again or recreates. The first Refresh comes before any other call on that thread.
///
/// Errors: one sentence: what cannot be done, why, and what to do. kNotFound: the target is gone.
/// kFailedPrecondition: no retry succeeds until the node changes. kUnavailable: retry. An exception
/// counts as kInternal.
class ClassProvider {
 public:
  virtual ~ClassProvider() = default;

  /// The type as it is now. Its name, level and mutability never change.
  [[nodiscard]] virtual ClassType List() const = 0;

  /// What a container is created with to have `class_name`; empty where only Apply can set it.
  /// Errors: kNotFound if there is no such class, kFailedPrecondition with the class's problem.
  [[nodiscard]] virtual StatusOr<ClassOptions> Resolve(const std::string& class_name) const = 0;

  /// Reads the machine and the type's configuration again: creates what all classes share, follows
  /// devices that come and go, and corrects drift. Called before all other functions, and once in
  /// every reconcile. `in_use` are the classes that containers have: a changed configuration that
  /// lacks one of them is rejected as a whole, and the previous one stays in force. If a definition
  /// changed, the caller applies it to each container for which ReadBack reports a difference.
  /// Errors: what could not be done; the rest was done.
  virtual Status Refresh(const std::set<std::string>& in_use) = 0;

  /// Gives `target` the class `to`; an empty name removes its class. `from` is its class so far,
  /// from Apply or Resolve; empty if it had none. If that class does not exist any more, its values
  /// are removed as well. Also called for a container that was created with
  /// Resolve's options, before its first instruction, and again with `from` equal to `to` if
  /// ReadBack found a difference. The target's limits must never be looser than the looser of the
  /// two classes. Errors: the target keeps `from` as far as the kernel allows; kNotFound.
  virtual Status Apply(const ClassTarget& target, const std::string& from,
                       const std::string& to) = 0;

  /// Compares the kernel's values with the class: empty if `target` has all values of `class_name`,
  /// else one sentence with its actual values. An empty class has no values. Errors: kNotFound;
  /// kUnavailable when the values cannot be read.
  [[nodiscard]] virtual StatusOr<std::string> ReadBack(const ClassTarget& target,
                                                       const std::string& class_name) = 0;

  /// `target` is gone: free what exists only for it. Called at least once for each target that ends
  /// while qrmd runs. Targets that ended before qrmd started are not reported; Refresh no longer
  /// finds them.
  virtual void Release(const ClassTarget& target) { static_cast<void>(target); }

  /// For metrics; called at each scrape.
  [[nodiscard]] virtual std::vector<ClassReading> Readings() { return {}; }
};

/// True for 1 to 63 letters, digits, '-', '_' and '.', where the first and the last are letters or
/// digits. Source: KEP-3008 (2022).
bool IsClassName(std::string_view text);
/// The same rule, as the last part of an error.
inline constexpr char kClassNameForm[] =
    "write 1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";

}  // namespace qrm::sdk
