// Everything that the manager asks of one plugin, wherever it runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/registry/plugins.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// Who is to blame for a call that brought no answer that we can use.
enum class Blame {
  kNobody,      ///< the answer is good
  kRefusal,     ///< the plugin answered with an error: its right
  kConnection,  ///< nobody is connected
  kTimeout,     ///< no answer in time
  kProtocol,    ///< the answer breaks the protocol
  kStopping,    ///< we are stopping
};

/// How a call went: `value` is the answer, or a cause without the words "cannot ...".
template <typename T>
struct CallResult {
  StatusOr<T> value;
  Blame blame = Blame::kNobody;
};

/// Nothing to say but that it worked.
struct Acknowledged {};

using AllocatableByResource = std::map<std::string, AllocatableResource>;

/// The calls to one plugin. Each ends by its deadline at the latest, is never sent twice, and
/// brings its result once, converted and checked, on any thread; the callback must not block.
///
/// Threads: any.
/// Errors:  the plugin's own code for a refusal (kUnimplemented for a call that it does not have),
///          kUnavailable for a connection, kDeadlineExceeded, kInvalidArgument for an answer that
///          breaks the protocol.
class PluginClient {
 public:
  template <typename T>
  using Done = std::function<void(CallResult<T>)>;

  virtual ~PluginClient() = default;

  /// The connection; null for a plugin inside this process, which has none that could break.
  virtual std::shared_ptr<grpc::Channel> channel() const = 0;

  virtual void GetOptions(Deadline deadline, Done<PluginOptions> done) = 0;
  virtual void GetTopologyHints(const ContainerRequest& request, Deadline deadline,
                                Done<HintList> done) = 0;
  virtual void Allocate(const ContainerRequest& request, Deadline deadline,
                        Done<AllocationByResource> done) = 0;
  virtual void RemovePod(const std::string& pod_uid, Deadline deadline,
                         Done<Acknowledged> done) = 0;
  virtual void GetResourcesAllocation(Deadline deadline, Done<HeldAllocations> done) = 0;
  virtual void GetAllocatable(Deadline deadline, Done<AllocatableByResource> done) = 0;
  virtual void GetPlacement(const ContainerKey& key, Deadline deadline,
                            Done<PlacedByResource> done) = 0;

  // Our extensions; other plugins answer kUnimplemented.
  virtual void ReleaseContainer(const ContainerKey& key, Deadline deadline,
                                Done<Acknowledged> done) = 0;
  virtual void GetPools(const std::string& resource, Deadline deadline,
                        Done<std::vector<PoolInfo>> done) = 0;
  virtual void SetPools(const std::string& resource, const StringMap& cpus_by_pool,
                        Deadline deadline, Done<std::vector<PoolInfo>> done) = 0;
};

}  // namespace qrm::manager
