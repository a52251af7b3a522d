// The first process of the main job's containers and of their sandboxes. It prints its CPUs and
// memory nodes, at once and whenever they change. It fills memory at each SIGUSR1, at SIGUSR2
// watches its CPUs without a pause until they change, and computes on two threads from one SIGHUP
// to the next. Statically linked: the image has nothing else.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t kFillBytes = 16 << 20;

volatile std::sig_atomic_t stop = 0;
volatile std::sig_atomic_t fills_asked = 0;
volatile std::sig_atomic_t watches_asked = 0;
volatile std::sig_atomic_t works = 0;

/// The value of `key` in /proc/self/status.
std::string StatusField(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0) {
      return line.substr(line.find_first_not_of(" \t", key.size() + 1));
    }
  }
  return "?";
}

/// The container's cgroup, as the runtime mounts it: version 1 or 2.
std::string CgroupFile(const std::string& name) {
  for (const char* directory : {"/sys/fs/cgroup/cpuset/", "/sys/fs/cgroup/"}) {
    std::ifstream file(directory + name);
    if (std::string value; file >> value) {
      return value;
    }
  }
  return "-";
}

std::string Report() {
  return "cpus " + StatusField("Cpus_allowed_list") + " mems " + StatusField("Mems_allowed_list") +
         " cgroup " + CgroupFile("cpuset.cpus");
}

/// Writes to fresh memory, and keeps it.
bool Fill() {
  void* fresh =
      ::mmap(nullptr, kFillBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    return false;
  }
  std::memset(fresh, 1, kFillBytes);
  return true;
}

/// Nanoseconds on the clock that all processes of the machine share.
int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Prints when it still had its present CPUs.
void WatchCpus() {
  cpu_set_t before;
  ::sched_getaffinity(0, sizeof(before), &before);
  int64_t last = Now();
  std::printf("watches\n");
  std::fflush(stdout);
  while (stop == 0) {
    const int64_t begin = Now();
    cpu_set_t now;
    ::sched_getaffinity(0, sizeof(now), &now);
    if (!CPU_EQUAL(&now, &before)) {
      break;
    }
    last = begin;
  }
  std::printf("unchanged at %lld\n", static_cast<long long>(last));
  std::fflush(stdout);
}

/// Computes until it is no longer to.
void Work() {
  while (works != 0 && stop == 0) {
  }
}

/// Threads that compute, while they should.
class Workers {
 public:
  Workers() = default;
  ~Workers() { Join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void Follow() {
    if (works != 0 && threads_.empty()) {
      threads_.emplace_back(Work);
      threads_.emplace_back(Work);
    } else if (works == 0) {
      Join();
    }
  }

 private:
  void Join() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  std::vector<std::thread> threads_;
};

}  // namespace

int main(int count, char** words, char** environment) {
  const int64_t began = Now();
  if (count > 1) {
    std::fprintf(
        stderr,
        "usage: %s\nSays what it may use, and again whenever that changes, until SIGTERM; fills\n"
        "16 MiB of memory at each SIGUSR1; watches its CPUs until they change at each SIGUSR2;\n"
        "computes on two threads from one SIGHUP to the next.\n",
        words[0]);
    return std::strcmp(words[1], "--help") == 0 ? 0 : 2;
  }
  std::signal(SIGTERM, [](int) { stop = 1; });
  std::signal(SIGUSR2, [](int) { watches_asked = watches_asked + 1; });
  std::signal(SIGHUP, [](int) { works = works == 0 ? 1 : 0; });
  std::signal(SIGUSR1, [](int) { fills_asked = fills_asked + 1; });
  std::printf("began at %lld\n", static_cast<long long>(began));
  for (char** variable = environment; *variable != nullptr; ++variable) {
    std::printf("env %s\n", *variable);
  }
  std::string last;
  Workers workers;
  for (int fills = 0, watches = 0; stop == 0;) {
    workers.Follow();
    if (watches < watches_asked) {
      ++watches;
      WatchCpus();
    }
    if (fills < fills_asked) {
      ++fills;
      std::printf(Fill() ? "filled\n" : "cannot map memory\n");
      std::fflush(stdout);
    }
    if (const std::string report = Report(); report != last) {
      std::printf("%s\n", report.c_str());
      std::fflush(stdout);
      last = report;
    }
    const timespec pause{.tv_nsec = 100'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return 0;
}
