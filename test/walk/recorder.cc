// Preloaded into a program that was compiled with -finstrument-functions: records in the file
// QRM_WALK_FILE which of its functions begin and end, in which thread, while the file says so.
#include <chrono>
#include <cstdlib>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/walk/trace.h"

namespace {

using qrm::test::Trace;

Trace* trace = nullptr;
uint64_t program = 0;  // where it was loaded

__attribute__((constructor)) void Open() {
  const char* const file = std::getenv("QRM_WALK_FILE");
  const int opened = file == nullptr ? -1 : ::open(file, O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    return;
  }
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        program = info->dlpi_addr;
        return 1;  // the program itself is the first
      },
      nullptr);
  void* const mapped =
      ::mmap(nullptr, sizeof(Trace), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  ::close(opened);
  trace = mapped == MAP_FAILED ? nullptr : static_cast<Trace*>(mapped);
}

void Record(uint64_t address) {
  if (trace == nullptr || !trace->is_on.load(std::memory_order_relaxed)) {
    return;
  }
  thread_local const int64_t thread = ::syscall(SYS_gettid);
  const uint64_t number = trace->count.fetch_add(1);
  if (number < Trace::kMost) {
    trace->events[number] = {address, std::chrono::steady_clock::now().time_since_epoch().count(),
                             thread};
  }
}

}  // namespace

extern "C" {

void __cyg_profile_func_enter(void* function,
                              void* /*caller*/) {  // NOLINT(bugprone-reserved-identifier)
  Record(reinterpret_cast<uint64_t>(function) - program);
}

void __cyg_profile_func_exit(void* /*function*/,
                             void* /*caller*/) {  // NOLINT(bugprone-reserved-identifier)
  Record(0);
}
}
