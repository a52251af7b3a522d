// A machine as one line of text: what is read is written as a line that reads as the same machine.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/base/check.h"
#include "test/fuzz/sentence.h"
#include "topology/machine_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto machine = qrm::ParseMachineText(text);
  if (!machine.ok()) {
    qrm::fuzz::CheckSentence(machine.status());
    return 0;
  }
  const std::string written = qrm::MachineText(*machine);
  const auto again = qrm::ParseMachineText(written);
  QRM_CHECK(again.ok() && qrm::MachineText(*again) == written);
  return 0;
}
