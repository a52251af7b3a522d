// qrmd's configuration, from its file or `qrmctl policy check`: it is read, or rejected with a
// sentence.
#include <cstddef>
#include <cstdint>
#include <string>

#include "manager/daemon/config_table.h"
#include "test/fuzz/sentence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto config = qrm::manager::ReadConfigText(text, "f", {}); !config.ok()) {
    qrm::fuzz::CheckSentence(config.status());
  }
  return 0;
}
