// A node's published annotations, as qrm-scheduler reads them: its configuration, its classes
// and its compute drivers.
#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/placement/node_model.h"
#include "scheduler/topology/class_offer.h"
#include "scheduler/topology/driver_offer.h"
#include "test/fuzz/sentence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto model = qrm::placement::ReadNodeModel(text, "n1"); !model.ok()) {
    qrm::fuzz::CheckSentence(model.status());
  }
  if (const auto offer = qrm::scheduler::ReadClassOffer(text); !offer.ok()) {
    qrm::fuzz::CheckSentence(offer.status());
  }
  if (const auto offer = qrm::scheduler::ReadDriverOffer(text); !offer.ok()) {
    qrm::fuzz::CheckSentence(offer.status());
  }
  return 0;
}
