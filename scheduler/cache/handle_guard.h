// What surrounds each call of an author's code: it may throw, and it may not return.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string>

#include "api/base/mutex.h"

namespace qrm::scheduler {

/// How nodes are judged by a resource of which nothing is known.
enum class WhenUnknown { kFilter, kPass };

/// Where one thread is in authors' code. Threads: any.
struct HandleCall {
  std::atomic<const std::string*> type{nullptr};  ///< of the resource; null: nowhere
  std::atomic<bool> late{false};                  ///< it was found not to return in time
  std::atomic<uint64_t> number{0};                ///< of the call, which tells calls apart
};

/// Counts what handles and resources do wrong, and leaves out those that block.
///
/// Threads: any.
class HandleGuard {
 public:
  WhenUnknown unknown = WhenUnknown::kFilter;  ///< a node has not reported the resource
  WhenUnknown failing = WhenUnknown::kFilter;  ///< the handle throws or blocks
  /// What a qrmd without a sign of life for so long has published is judged by `unknown`, too.
  std::chrono::milliseconds published_within{900'000};

  /// A resource whose code is called, before any call.
  void Know(const std::string& type) { known_.insert(type); }

  /// Runs `use` for the resource `type`. False when that throws.
  template <typename Use>
  bool Run(const std::string& type, HandleCall& call, const Use& use) {
    const auto known = known_.find(type);
    call.type = known == known_.end() ? nullptr : &*known;
    ++call.number;
    bool done = false;
    try {
      use();
      done = true;
    } catch (const std::exception& error) {
      NoteThrown(type, error.what());
    } catch (...) {
      NoteThrown(type, "an object of another type than std::exception");
    }
    call.type = nullptr;
    if (call.late.exchange(false)) {
      Returned(type);
    }
    return done;
  }

  /// A call that has been in the code of one handle for too long. Returns its type; empty when it
  /// has returned meanwhile. Calls do without the handle until it returns.
  std::string NoteLate(HandleCall& call);
  bool IsBlocked(const std::string& type) const;

  /// Of the cache's writer, which is one thread.
  HandleCall& writer() { return writer_; }

  /// A node that has not reported `type`, or not lately, was judged by `unknown`.
  void CountUnknown(const std::string& type);
  struct Counts {
    uint64_t threw = 0;
    uint64_t blocked = 0;
    uint64_t unknown = 0;
  };
  std::map<std::string, Counts> counts() const;

 private:
  void NoteThrown(const std::string& type, const std::string& what);
  void Returned(const std::string& type);

  std::set<std::string> known_;  // unlike keys of tables, for as long as others read them
  HandleCall writer_;
  std::atomic<bool> any_blocked_{false};
  mutable Mutex mutex_;
  std::map<std::string, int> blocked_ QRM_GUARDED_BY(mutex_);  // type -> calls
  std::map<std::string, Counts> counts_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::scheduler
