// Bounds the CPU time of one input: libFuzzer's own limit counts wall time, in which a busy machine
// makes findings. The linker puts this function between libFuzzer and the target (--wrap).
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "api/base/check.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap makes.
extern "C" int __real_LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

extern "C" int __wrap_LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::clock_t begin = std::clock();
  const int answer = __real_LLVMFuzzerTestOneInput(data, size);
  QRM_CHECK(std::clock() - begin <= CLOCKS_PER_SEC);
  return answer;
}
// NOLINTEND(bugprone-reserved-identifier)
