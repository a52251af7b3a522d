// The spec that a pod gives the driver of CPUs by attributes: it is read as at most the allowed
// number of lines and CPUs, or rejected with a sentence.
#include <cstddef>
#include <cstdint>
#include <string>

#include "api/base/check.h"
#include "plugins/cci/spec.h"
#include "test/fuzz/sentence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto spec = qrm::cci::ReadPodSpec(text, {{"low-latency", {}}}, 4);
  if (!spec.ok()) {
    qrm::fuzz::CheckSentence(spec.status());
    return 0;
  }
  QRM_CHECK(spec->lines.size() <= 1024);
  return 0;
}
