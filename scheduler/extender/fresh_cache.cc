// Runs the feed's loop while its caller waits.
#include "scheduler/extender/fresh_cache.h"

#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "api/base/errorf.h"
#include "cluster/api_client.h"
#include "scheduler/extender/cluster_feed.h"

namespace qrm::scheduler {

struct FreshCache::Impl {
  Impl(const cluster::ClusterAccess& access, MakeHandles make, const std::string& user_agent)
      : make_handles(std::move(make)), client(io, access, {.user_agent = user_agent}) {}

  const MakeHandles make_handles;
  HandleRegistry handles;
  boost::asio::io_context io{1};
  std::unique_ptr<SchedulerCache> cache;
  cluster::ApiClient client;
  std::unique_ptr<ClusterFeed> feed;
};

FreshCache::FreshCache(const cluster::ClusterAccess& access, MakeHandles make_handles,
                       const std::string& user_agent)
    : impl_(new Impl(access, std::move(make_handles), user_agent)) {}

FreshCache::~FreshCache() = default;

Status FreshCache::Start() {
  QRM_ASSIGN_OR_RETURN(impl_->handles, impl_->make_handles());
  QRM_ASSIGN_OR_RETURN(impl_->cache, SchedulerCache::Make(impl_->handles));
  QRM_ASSIGN_OR_RETURN(impl_->feed, ClusterFeed::Make(impl_->io, impl_->client, *impl_->cache));
  impl_->feed->Start();
  return OkStatus();
}

Status FreshCache::Follow(std::chrono::milliseconds time) {
  impl_->io.restart();  // it ends when there is nothing to wait for
  impl_->io.run_for(time);
  for (const auto& [kind, status] : impl_->feed->statuses()) {
    if (!status.trouble.ok()) {
      return Errorf(StatusCode::kUnavailable, "cannot list {}: {}", kind,
                    MessageOf(status.trouble));
    }
  }
  return OkStatus();
}

SchedulerCache& FreshCache::cache() {
  return *impl_->cache;
}

}  // namespace qrm::scheduler
