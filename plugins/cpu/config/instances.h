// Instances of pools: each is a copy of the pool for one group of containers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"

namespace qrm::cpu {

/// The name of the configured pool of `pool`, which is a pool or an instance "NAME/GROUP".
std::string_view ConfiguredName(std::string_view pool);

/// The configuration of `pool`, a pool or an instance. Null when there is no such pool, and for a
/// pool that has only the CPUs of its instances.
const PoolConfig* FindPool(const CpuPluginConfig& config, std::string_view pool);

/// Whether the size of `pool`, a pool or an instance, follows its containers.
bool IsElastic(const CpuPluginConfig& config, std::string_view pool);

/// Whether `pool` is an instance for the containers of a NUMA node; PoolFor leaves the node open.
bool IsByNode(const CpuPluginConfig& config, std::string_view pool);
/// The instance of the pool of `pool` on `node`, and the node of such an instance, if it has one.
std::string InstanceOn(std::string_view pool, int node);
std::optional<int> NodeOfInstance(const CpuPluginConfig& config, std::string_view pool);

/// The `number`-th instance of the group of `first`, its first one; and the first one of the group
/// of `instance`.
std::string NumberedInstance(const std::string& first, int number);
std::string_view FirstInstance(std::string_view instance);

/// The instances of `pool` that instances.min keeps without containers, from 1.
std::string SpareInstance(std::string_view pool, int number);
bool IsSpare(std::string_view pool);

/// The pool or instance that a container of `pool` uses; the instance may not exist yet, and may be
/// the first one of several. Errors:
/// kInvalidArgument when the pod lacks the label that selects an instance.
StatusOr<std::string> PoolFor(const CpuPluginConfig& config, const std::string& pool,
                              const ContainerRequest& request);

}  // namespace qrm::cpu
