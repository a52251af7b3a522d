// Follows threads and their groups through /proc.
#include "test/support/resctrl/thread_groups.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace qrm::test {
namespace {

constexpr auto kFork = std::chrono::milliseconds(1);  // the longest that is modelled

bool Lives(pid_t thread) {
  return ::access(fmt::format("/proc/{}", thread).c_str(), F_OK) == 0;
}

uint64_t TicksSinceBoot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * ticks +
         static_cast<uint64_t>(now.tv_nsec) * ticks / 1'000'000'000;
}

struct Birth {
  pid_t creator = 0;
  uint64_t ticks = 0;
};

/// The number that the kernel gave to a thread last. Source: proc(5), "/proc/loadavg".
pid_t LastNumber() {
  std::ifstream file("/proc/loadavg");
  std::string skipped;
  for (int field = 0; field < 4; ++field) {
    file >> skipped;
  }
  pid_t number = 0;
  file >> number;
  return number;
}

/// Whether `thread` has the earlier number of two threads that began within two clock ticks, or is
/// `other`. Numbers restart at the smallest one after the greatest.
bool IsNumberedUpTo(pid_t thread, pid_t other) {
  constexpr pid_t kMoreThanInTwoTicks = 10'000;
  return thread <= other ? other - thread < kMoreThanInTwoTicks
                         : thread - other > kMoreThanInTwoTicks;
}

/// The parent of a process, or the process of a thread; and its start time. Source: proc(5).
std::optional<Birth> BirthOf(pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  Birth birth;
  pid_t process = thread;
  for (std::string key; status >> key;) {
    if (key == "Tgid:") {
      status >> process;
    } else if (key == "PPid:") {
      status >> birth.creator;
      break;
    }
  }
  if (process != thread) {
    birth.creator = process;
  }
  std::ifstream stat(fmt::format("/proc/{}/stat", thread));
  std::string line;
  if (!std::getline(stat, line)) {
    return std::nullopt;
  }
  // The name may hold anything: what follows its last bracket are the fields from the third on.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) {
    fields >> skipped;
  }
  fields >> birth.ticks;
  return birth;
}

}  // namespace

void ThreadGroups::Watch(std::string cgroup_directory) {
  const MutexLock lock(mutex_);
  watched_.insert(std::move(cgroup_directory));
}

ThreadGroups::Entry* ThreadGroups::Adopt(pid_t thread) {
  if (const auto known = entries_.find(thread); known != entries_.end()) {
    return &known->second;
  }
  const std::optional<Birth> birth = BirthOf(thread);
  if (!birth.has_value()) {
    return nullptr;
  }
  Entry entry;
  if (const auto creator = entries_.find(birth->creator); creator != entries_.end()) {
    const Entry& from = creator->second;
    // Within kFork, which may end in the next tick; numbers of another round are not compared.
    const bool under_way = birth->ticks <= from.moved + 1 && IsNumberedUpTo(thread, from.last);
    entry.group = under_way ? from.before : from.group;
    entry.before = entry.group;
  }
  return &entries_.emplace(thread, std::move(entry)).first->second;
}

void ThreadGroups::CountForksUnderWay() {
  const pid_t last = LastNumber();  // before the time, so that it is not later
  const auto now = std::chrono::steady_clock::now();
  for (auto fork = under_way_.begin(); fork != under_way_.end();) {
    const auto entry = entries_.find(fork->first);
    if (entry == entries_.end() || now > fork->second) {
      fork = under_way_.erase(fork);
      continue;
    }
    entry->second.last = last;
    ++fork;
  }
}

void ThreadGroups::FindNew() {
  for (const std::string& directory : watched_) {
    for (const char* const name : {"/cgroup.threads", "/tasks"}) {
      std::ifstream threads(directory + name);
      for (pid_t thread = 0; threads >> thread;) {
        Adopt(thread);
      }
    }
  }
}

bool ThreadGroups::Move(pid_t thread, ThreadGroup group) {
  const MutexLock lock(mutex_);
  CountForksUnderWay();
  FindNew();
  Entry* const entry = Lives(thread) ? Adopt(thread) : nullptr;
  if (entry == nullptr) {
    entries_.erase(thread);
    return false;
  }
  entry->before = std::exchange(entry->group, std::move(group));
  entry->moved = TicksSinceBoot();
  entry->last = LastNumber();
  under_way_[thread] = std::chrono::steady_clock::now() + kFork;
  return true;
}

bool ThreadGroups::Find(pid_t thread, ThreadGroup& group) {
  const MutexLock lock(mutex_);
  CountForksUnderWay();
  Entry* const entry = Lives(thread) ? Adopt(thread) : nullptr;
  if (entry == nullptr) {
    entries_.erase(thread);
    return false;
  }
  group = entry->group;
  return true;
}

std::vector<pid_t> ThreadGroups::In(const ThreadGroup& group) {
  const MutexLock lock(mutex_);
  CountForksUnderWay();
  FindNew();
  std::vector<pid_t> threads;
  std::erase_if(entries_, [](const auto& entry) { return !Lives(entry.first); });
  for (const auto& [thread, entry] : entries_) {
    if (entry.group == group) {
      threads.push_back(thread);
    }
  }
  return threads;
}

void ThreadGroups::MoveAll(const ThreadGroup& from, const ThreadGroup& to) {
  const MutexLock lock(mutex_);
  FindNew();
  for (auto& [thread, entry] : entries_) {
    if (entry.group == from) {
      entry.group = to;
    }
    if (entry.before == from) {
      entry.before = to;
    }
  }
}

void ThreadGroups::Reset() {
  const MutexLock lock(mutex_);
  entries_.clear();
  under_way_.clear();
}

}  // namespace qrm::test
