// What a type of QoS-class resources is to qrmd: which classes it has, and how a container gets,
// changes and keeps one.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::sdk {

/// Whether containers have a class of a type, or pods as a whole.
enum class ClassLevel : uint8_t { kContainer, kPod };

/// One class, as its type's configuration and the kernel make it. Who may have it, how many, and
/// who gets it without asking is qrmd's configuration, equal for all types.
struct ClassInfo {
  std::string name;
  std::string definition;  ///< as the kernel has it where there is something to read, on one line
  std::string problem;     ///< why nobody can be given it now, with the cure; empty: it can
  uint64_t capacity = 0;   ///< how many the kernel can keep apart at a time; 0: any number

  bool operator==(const ClassInfo&) const = default;
};

/// One type at one time.
struct ClassType {
  std::string name;  ///< "blockio"; of someone else's "lanes.example.com"; no two are equal
  ClassLevel level = ClassLevel::kContainer;
  bool is_mutable = true;  ///< a running container can get another class
  std::vector<ClassInfo> classes;
  std::string problem;  ///< why it gives no class at all, with the cure; empty: it does
  uint64_t repairs =
      0;  ///< how often it put back what others had changed in what all classes share

  bool operator==(const ClassType&) const = default;
};

/// What the runtime makes a container with to have a class from its first instruction on. Types
/// leave empty what they do not set.
struct ClassOptions {
  std::string rdt_class;  ///< a resctrl group that exists
  StringMap unified;      ///< cgroup v2 file -> value
  std::optional<int64_t> oom_score_adj;

  bool operator==(const ClassOptions&) const = default;
};

/// A container that the runtime has made and not removed. It may end at any time, also while a
/// provider works on it: what is gone is no error, but for kNotFound of a call that was to tell
/// something about it.
struct ClassTarget {
  ContainerKey key;        ///< of a pod's own class: with an empty container
  std::string runtime_id;  ///< a container that is made anew is another target
  /// As the runtime names it: "/kubepods/pod1/c1", or systemd's "slice:prefix:name". Of a pod, its
  /// parent cgroup. api/base/cgroup.h finds its directories.
  std::string cgroups_path;

  bool operator==(const ClassTarget&) const = default;
};

/// A number that a provider reads about a class, such as what the class has of a cache.
struct ClassReading {
  std::string class_name;
  std::string quantity;  ///< with the unit, few values: "llc_occupancy_bytes"
  double value = 0;

  bool operator==(const ClassReading&) const = default;
};

/// A type of QoS-class resources. The daemon makes it from its configuration and owns it;
/// manager/classes calls it, and alone decides and remembers who has which class.
///
/// Threads: List and Resolve are called by any thread, also while another function runs: they
/// answer from memory, at once. All other functions may wait for the kernel; they are called on one
/// thread that is this provider's alone, one call at a time, and nothing is locked meanwhile: what
/// is slow delays nobody but those who change or start with a class of this type.
///
/// Ownership: what a provider holds in the kernel (groups, limits) can be found there or made anew:
/// it keeps nothing on disk. The first Refresh is before any other call of that thread.
///
/// Errors: a sentence as everywhere: what cannot be done, why, and the cure. kNotFound: the target
/// is gone; kFailedPrecondition: the node has to change, trying again is vain until it does;
/// kUnavailable: try again. An exception is taken for kInternal.
class ClassProvider {
 public:
  virtual ~ClassProvider() = default;

  /// The type as it is now. Its name, level and mutability never change.
  [[nodiscard]] virtual ClassType List() const = 0;

  /// What a container is made with to have `class_name`; nothing where only Apply can give it.
  /// Errors: kNotFound without such a class, kFailedPrecondition with its problem.
  [[nodiscard]] virtual StatusOr<ClassOptions> Resolve(const std::string& class_name) const = 0;

  /// Looks at the machine and at the type's configuration anew: makes what all classes share,
  /// follows devices that come and go, and puts back what others have changed. Called first of all,
  /// and once for every reconcile. `in_use` are the classes that somebody has: a configuration
  /// without one of them is refused whole, and the former stays in force. What changed in a
  /// definition is brought to its users by the caller, where ReadBack finds the difference. Errors:
  /// what could not be done; the rest was.
  virtual Status Refresh(const std::set<std::string>& in_use) = 0;

  /// Gives `target` the class `to`; an empty name: none. `from` is what it had before, by Apply or
  /// by Resolve; empty where it had none. Also called for a container that was made with what
  /// Resolve says, before its first instruction, and again where ReadBack found a difference, with
  /// `from` as `to`. At no instant is the target bounded more loosely than by the looser of both.
  /// Errors: the target has what it had before, as far as the kernel allows; kNotFound.
  virtual Status Apply(const ClassTarget& target, const std::string& from,
                       const std::string& to) = 0;

  /// What the kernel says: empty when `target` has all that `class_name` promises, which is nothing
  /// for an empty one, else one sentence with what it has instead. Errors: kNotFound; kUnavailable
  /// when it cannot be read.
  [[nodiscard]] virtual StatusOr<std::string> ReadBack(const ClassTarget& target,
                                                       const std::string& class_name) = 0;

  /// `target` is gone, and what is kept for it alone can go. Called at least once for each that
  /// went while qrmd ran; those that went before are not in the next Refresh's machine any more.
  virtual void Release(const ClassTarget& target) { static_cast<void>(target); }

  /// For metrics; read as often as they are.
  [[nodiscard]] virtual std::vector<ClassReading> Readings() { return {}; }
};

}  // namespace qrm::sdk
