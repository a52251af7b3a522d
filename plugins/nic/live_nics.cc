// Connects the plugin with the watch.
#include "plugins/nic/live_nics.h"

#include <utility>

#include "plugins/nic/kernel_watch.h"
#include "plugins/nic/nic_plugin.h"

namespace qrm::nic {

NicFacts ReadNicFacts(const NicPluginConfig& config) {
  return KernelWatch(FollowedNamespaces(config)).Read();
}

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeLiveNicPlugin(NicPluginConfig config,
                                                                 const Machine& machine) {
  if (machine.parts().online.empty()) {
    config.follow = NicFollow::kNone;
  }
  auto watch = std::make_unique<KernelWatch>(FollowedNamespaces(config));
  const NicFacts facts = watch->Read();
  if (config.follow == NicFollow::kNone) {
    watch.reset();
  }
  return MakeNicPlugin(config, machine, facts, std::move(watch));
}

}  // namespace qrm::nic
