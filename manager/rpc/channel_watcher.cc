// Runs a completion queue on a thread, with one self-renewing watch per channel.
#include "manager/rpc/channel_watcher.h"

#include <memory>
#include <thread>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include "api/base/mutex.h"

namespace qrm::manager {
namespace {

/// One watched channel: the tag in the queue, which owns it; see Impl::Run.
struct Watched {
  std::weak_ptr<grpc::Channel> channel;
  ChannelWatcher::Changed changed;
  grpc_connectivity_state last = GRPC_CHANNEL_READY;
};

}  // namespace

struct ChannelWatcher::Impl {
  /// Waits for the next change of `watched`; drops it when the watcher stops.
  void Arm(std::unique_ptr<Watched> watched, grpc::Channel& channel) {
    const MutexLock lock(mutex);
    if (stopping) {  // gRPC forbids new watches on a queue that is shut down
      return;
    }
    Watched* const tag = watched.release();
    channel.NotifyOnStateChange(tag->last, gpr_inf_future(GPR_CLOCK_REALTIME), &queue, tag);
  }

  /// A destroyed channel ends its watch, so every tag comes back and the queue drains.
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      std::unique_ptr<Watched> watched(static_cast<Watched*>(tag));
      const std::shared_ptr<grpc::Channel> channel = watched->channel.lock();
      if (channel == nullptr) {
        continue;
      }
      watched->last = channel->GetState(/*try_to_connect=*/true);
      watched->changed(watched->last == GRPC_CHANNEL_READY);
      Arm(std::move(watched), *channel);
    }
  }

  Mutex mutex;
  bool stopping QRM_GUARDED_BY(mutex) = false;
  grpc::CompletionQueue queue;
  std::thread thread;
};

ChannelWatcher::ChannelWatcher() : impl_(new Impl) {
  impl_->thread = std::thread([this] { impl_->Run(); });
}

ChannelWatcher::~ChannelWatcher() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopping = true;
    impl_->queue.Shutdown();
  }
  impl_->thread.join();
}

void ChannelWatcher::Watch(grpc::Channel& channel, Changed changed) {
  auto watched = std::make_unique<Watched>();
  watched->channel = channel.weak_from_this();
  watched->changed = std::move(changed);
  impl_->Arm(std::move(watched), channel);
}

}  // namespace qrm::manager
