// Kubelet's own pod-resources socket, with a test's content.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "api/base/mutex.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"

namespace qrm::test {

/// Lists pods and their devices, and allocatable devices once a test sets one. Threads: any.
class FakeKubelet final : public ::v1::PodResourcesLister::CallbackService {
 public:
  struct Container {
    std::string pod_namespace;
    std::string pod;
    std::string name;
  };
  /// Kubelet leaves the topology out where a device's plugin does not know it.
  struct Device {
    std::string resource;
    std::string id;
    std::vector<int> nodes;
  };

  explicit FakeKubelet(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeKubelet() override {
    Release();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  /// Each device is a separate entry, as kubelet lists devices of different nodes.
  void AddDevice(const Container& container, const Device& device) {
    const MutexLock lock(mutex_);
    FillDevice(device, *ResourcesOf(container).add_devices());
  }
  /// A device of a claim in the pod's namespace.
  struct Claimed {
    std::string claim;
    std::string driver;
    std::string pool;
    std::string device;
    std::vector<std::string> cdi_ids;
  };
  void AddClaim(const Container& container, const Claimed& claimed) {
    const MutexLock lock(mutex_);
    auto& resource = *ResourcesOf(container).add_dynamic_resources();
    resource.set_claim_name(claimed.claim);
    resource.set_claim_namespace(container.pod_namespace);
    auto& device = *resource.add_claim_resources();
    device.set_driver_name(claimed.driver);
    device.set_pool_name(claimed.pool);
    device.set_device_name(claimed.device);
    for (const std::string& id : claimed.cdi_ids) {
      device.add_cdi_devices()->set_name(id);
    }
  }
  /// The allocatable devices are this one.
  void SetAllocatable(const Device& device) {
    const MutexLock lock(mutex_);
    allocatable_.emplace();
    FillDevice(device, *allocatable_->add_devices());
  }
  /// From now on GetAllocatableResources fails, and no other call.
  void FailAllocatable() {
    const MutexLock lock(mutex_);
    allocatable_fails_ = true;
  }
  /// Calls are answered only when they are released, with an error.
  void Hang() {
    const MutexLock lock(mutex_);
    hangs_ = true;
  }
  void Release() {
    std::vector<grpc::ServerUnaryReactor*> held;
    {
      const MutexLock lock(mutex_);
      hangs_ = false;
      held.swap(held_);
    }
    for (grpc::ServerUnaryReactor* reactor : held) {
      reactor->Finish({grpc::StatusCode::INTERNAL, "kubelet is confused"});
    }
  }
  /// Calls so far.
  int lists() const {
    const MutexLock lock(mutex_);
    return lists_;
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const ::v1::ListPodResourcesRequest*,
                                 ::v1::ListPodResourcesResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const MutexLock lock(mutex_);
    ++lists_;
    if (hangs_) {
      held_.push_back(reactor);
    } else {
      *response = list_;
      reactor->Finish(grpc::Status::OK);
    }
    return reactor;
  }

  grpc::ServerUnaryReactor* GetAllocatableResources(
      grpc::CallbackServerContext* context, const ::v1::AllocatableResourcesRequest*,
      ::v1::AllocatableResourcesResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const MutexLock lock(mutex_);
    if (!allocatable_.has_value()) {
      reactor->Finish({grpc::StatusCode::UNIMPLEMENTED, ""});
    } else if (allocatable_fails_) {
      reactor->Finish({grpc::StatusCode::INTERNAL, "kubelet is confused"});
    } else {
      *response = *allocatable_;
      reactor->Finish(grpc::Status::OK);
    }
    return reactor;
  }

 private:
  static void FillDevice(const Device& device, ::v1::ContainerDevices& devices) {
    devices.set_resource_name(device.resource);
    devices.add_device_ids(device.id);
    for (const int node : device.nodes) {
      devices.mutable_topology()->add_nodes()->set_id(node);
    }
  }
  ::v1::ContainerResources& ResourcesOf(const Container& container) QRM_REQUIRES(mutex_) {
    ::v1::PodResources* pod = nullptr;
    for (::v1::PodResources& listed : *list_.mutable_pod_resources()) {
      const bool same =
          listed.namespace_() == container.pod_namespace && listed.name() == container.pod;
      pod = same ? &listed : pod;
    }
    if (pod == nullptr) {
      pod = list_.add_pod_resources();
      pod->set_namespace_(container.pod_namespace);
      pod->set_name(container.pod);
    }
    for (::v1::ContainerResources& listed : *pod->mutable_containers()) {
      if (listed.name() == container.name) {
        return listed;
      }
    }
    ::v1::ContainerResources& added = *pod->add_containers();
    added.set_name(container.name);
    return added;
  }

  std::unique_ptr<grpc::Server> server_;
  mutable Mutex mutex_;
  ::v1::ListPodResourcesResponse list_ QRM_GUARDED_BY(mutex_);
  std::optional<::v1::AllocatableResourcesResponse> allocatable_ QRM_GUARDED_BY(mutex_);
  bool allocatable_fails_ QRM_GUARDED_BY(mutex_) = false;
  bool hangs_ QRM_GUARDED_BY(mutex_) = false;
  int lists_ QRM_GUARDED_BY(mutex_) = 0;
  std::vector<grpc::ServerUnaryReactor*> held_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
