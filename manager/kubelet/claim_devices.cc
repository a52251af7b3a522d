// Holds the sources, in their order, and asks them on a thread of its own.
#include "manager/kubelet/claim_devices.h"

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "cluster/api_client.h"
#include "cluster/list_watch.h"
#include "manager/kubelet/cdi_nodes.h"
#include "manager/kubelet/slice_nodes.h"
#include "manager/kubelet/sysfs_nodes.h"

namespace qrm::manager {
namespace {

constexpr char kSlicesPath[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr std::chrono::seconds kNextTry{10};

/// The client of the API server and what uses it.
struct Connection {
  Connection(boost::asio::io_context& io, cluster::ClusterAccess access, SliceNodes& slices,
             const ClaimDevicesOptions& options)
      : client(io, std::move(access), {.user_agent = "qrmd"}),
        claims(client, SysfsNodes(options.sysfs)),
        watch(io, client,
              {.path = kSlicesPath, .field_selector = "spec.nodeName=" + options.node_name},
              slices) {}

  cluster::ApiClient client;
  ClaimStatusNodes claims;
  cluster::ListWatch watch;
};

/// What is left to do for one question.
struct Search {
  std::vector<ClaimDevice> devices;
  ClaimDevices::Located located;
  std::vector<NearNodes> found;  // so many devices are done
};

}  // namespace

std::string ClaimDevice::Name() const {
  return claim.empty() ? fmt::format("device {}", fmt::join(cdi_ids, ", "))
                       : fmt::format("claim {}: {}/{}/{}", claim, driver, pool, device);
}

struct ClaimDevices::Impl {
  explicit Impl(ClaimDevicesOptions given)
      : options(std::move(given)),
        slices(options.attributes, SysfsNodes(options.sysfs)),
        cdi(options.cdi_dirs, SysfsNodes(options.sysfs)) {}

  void Connect() {
    StatusOr<cluster::ClusterAccess> access = options.access();
    if (access.ok()) {
      connection.emplace(io, *std::move(access), slices, options);
      connection->watch.Start();
      const MutexLock lock(mutex);
      problem.clear();
      watch = &connection->watch;
      return;
    }
    {
      const MutexLock lock(mutex);
      if (problem.empty()) {
        log::Warning("cannot access the API server, so ResourceSlices are not read",
                     {{"error", MessageOf(access.status())}});
      }
      problem = MessageOf(access.status());
    }
    retry.expires_after(kNextTry);
    retry.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        Connect();
      }
    });
  }

  std::vector<NearNodesSource*> Sources() {
    std::vector<NearNodesSource*> sources = {&slices, &cdi};
    if (connection.has_value()) {
      sources.push_back(&connection->claims);
    }
    return sources;
  }

  /// Asks for the next device of `search`, from the source `first` on.
  void Go(const std::shared_ptr<Search>& search, std::size_t first) {
    if (search->found.size() == search->devices.size()) {
      search->located(std::move(search->found));
      return;
    }
    const std::vector<NearNodesSource*> sources = Sources();
    if (first >= sources.size()) {
      search->found.emplace_back();
      Go(search, 0);
      return;
    }
    sources[first]->Find(search->devices[search->found.size()],
                         [this, search, first](const NearNodes& nodes) {
                           if (nodes.empty()) {
                             Go(search, first + 1);
                             return;
                           }
                           search->found.push_back(nodes);
                           Go(search, 0);
                         });
  }

  const ClaimDevicesOptions options;
  SliceNodes slices;
  CdiNodes cdi;
  boost::asio::io_context io{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard;
  boost::asio::steady_timer retry{io};
  std::optional<Connection> connection;
  mutable Mutex mutex;
  std::string problem QRM_GUARDED_BY(mutex);  // of the access
  const cluster::ListWatch* watch QRM_GUARDED_BY(mutex) = nullptr;
  std::thread thread;
};

ClaimDevices::ClaimDevices(ClaimDevicesOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

ClaimDevices::~ClaimDevices() {
  Stop();
}

void ClaimDevices::Start() {
  if (impl_->thread.joinable()) {
    return;
  }
  impl_->guard.emplace(impl_->io.get_executor());
  if (impl_->options.access != nullptr) {
    boost::asio::post(impl_->io, [impl = impl_.get()] { impl->Connect(); });
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->io.run(); });
}

void ClaimDevices::Stop() {
  if (impl_->thread.joinable()) {
    impl_->io.stop();
    impl_->thread.join();
  }
}

void ClaimDevices::Locate(std::vector<ClaimDevice> devices, Located located) {
  auto search = std::make_shared<Search>(
      Search{.devices = std::move(devices), .located = std::move(located), .found = {}});
  boost::asio::post(impl_->io, [impl = impl_.get(), search] { impl->Go(search, 0); });
}

std::string ClaimDevices::problem() const {
  const MutexLock lock(impl_->mutex);
  const Status trouble = impl_->watch == nullptr ? OkStatus() : impl_->watch->status().trouble;
  const std::string cause = trouble.ok() ? impl_->problem : MessageOf(trouble);
  return cause.empty() ? cause
                       : fmt::format(
                             "cannot read the node's ResourceSlices, so the NUMA nodes of "
                             "claimed devices are those of CDI specifications: {}; allow qrmd to "
                             "list and watch resourceslices, or set resource-slices: false",
                             cause);
}

}  // namespace qrm::manager
