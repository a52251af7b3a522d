// Writes and reads the text form of the memory that init containers still hold.
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "plugins/memory/state.h"

namespace qrm::memory {

using nlohmann::json;

std::string SaveInits(const Bindings& bindings) {
  json inits = json::array();
  for (const auto& [key, binding] : bindings) {
    if (binding.type != ContainerType::kInit || binding.blocks.empty()) {
      continue;
    }
    json bytes = json::object();
    for (const MemoryBlock& block : binding.blocks) {
      bytes[block.type] = block.bytes;
    }
    inits.push_back({{"pod", key.pod_uid}, {"container", key.container}, {"bytes", bytes}});
  }
  return inits.empty() ? "" : json{{"init_containers", inits}}.dump();
}

StatusOr<SavedInits> LoadInits(const std::string& text) {
  SavedInits inits;
  try {
    const json saved = json::parse(text.empty() ? R"({"init_containers":[]})" : text);
    for (const json& init : saved.at("init_containers")) {
      inits[{init.at("pod").get<std::string>(), init.at("container").get<std::string>()}] =
          init.at("bytes").get<MemoryBytes>();
    }
  } catch (const json::exception& error) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read the saved memory of init containers, so that their whole requests "
                  "count: {1}: '{0}'",
                  text, error.what());
  }
  return inits;
}

}  // namespace qrm::memory
