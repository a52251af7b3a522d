// The files of QoS-class resources, as each type reads them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "api/base/section.h"
#include "plugins/blockio/config.h"
#include "plugins/kernel/knob.h"
#include "plugins/rdt/config.h"
#include "test/fuzz/sentence.h"

namespace {

template <typename Read>
void Check(const Read& read) {
  if (!read.ok()) {
    qrm::fuzz::CheckSentence(read.status());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = qrm::config::Section::Parse(text, "f");
  Check(file);
  if (!file.ok()) {
    return 0;
  }
  Check(qrm::blockio::ParseConfig(*file));
  Check(qrm::kernel::ParseQuotaClasses(*file));
  Check(qrm::rdt::ParseRdtConfig(*file));
  for (const qrm::kernel::KnobType& type : qrm::kernel::KnobTypes()) {
    Check(qrm::kernel::ParseKnobClasses(*file, type));
  }
  return 0;
}
