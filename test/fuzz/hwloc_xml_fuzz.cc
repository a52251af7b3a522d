// hwloc XML: any text is a machine that can be shown, or an error in a sentence.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "test/support/xml_machine.h"
#include "topology/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  const qrm::StatusOr<qrm::Machine> machine =
      qrm::test::MachineFromXml(xml, size % 2 == 0 ? qrm::MachineSource::OutsideCpuset::kHide
                                                   : qrm::MachineSource::OutsideCpuset::kKeep);
  if (!machine.ok()) {
    QRM_CHECK(!machine.status().message().empty());
    return 0;
  }
  QRM_CHECK(!qrm::DescribeMachine(*machine).empty());
  QRM_CHECK(!qrm::MachineToJson(*machine)
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                 .empty());
  return 0;
}
