// Instances of pools: groups of containers that have a pool's CPUs each for themselves.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"

namespace qrm::cpu {

/// The name of the configured pool of `pool`, which is one or an instance "NAME/GROUP" of one.
std::string_view ConfiguredName(std::string_view pool);

/// The configuration of `pool`, a pool or an instance of one; null when there is no such pool, and
/// for a pool that has no CPUs but those of its instances.
const PoolConfig* FindPool(const CpuPluginConfig& config, std::string_view pool);

/// Whether the size of `pool`, a pool or an instance, follows its containers.
bool IsElastic(const CpuPluginConfig& config, std::string_view pool);

/// What a container that is led to `pool` uses: the pool, or an instance of it, which may not be
/// there yet. Errors: kInvalidArgument when the pod lacks the label by which there are instances.
StatusOr<std::string> PoolFor(const CpuPluginConfig& config, const std::string& pool,
                              const ContainerRequest& request);

}  // namespace qrm::cpu
