// Follows one server stream: every message notifies, and its content is not read.
#include "manager/runtime/cri/cri_event_watch.h"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <grpcpp/grpcpp.h>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/rpc/grpc_status.h"

namespace qrm::manager {
namespace {

namespace cri = ::runtime::v1;

/// Lives until gRPC has ended the call. No callback runs after Close.
class Stream final : public grpc::ClientReadReactor<cri::ContainerEventResponse>,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(boost::asio::io_context& io, const std::shared_ptr<grpc::Channel>& channel,
         std::function<void()> on_event, std::function<void(Status)> on_end)
      : io_(io),
        stub_(cri::RuntimeService::NewStub(channel)),
        on_event_(std::move(on_event)),
        on_end_(std::move(on_end)) {}

  void Begin() {
    self_ = shared_from_this();
    stub_->async()->GetContainerEvents(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  /// Threads: the I/O loop. A cancelled call ends soon, but may still post until then.
  void Close() {
    closed_ = true;
    context_.TryCancel();
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) { return done_; });
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return;  // OnDone follows
    }
    boost::asio::post(io_, [self = shared_from_this()] {
      if (!self->closed_) {
        self->on_event_();
      }
    });
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<Stream> self = std::move(self_);
    boost::asio::post(io_, [self, status = rpc::FromGrpc(status)] {
      if (!self->closed_) {
        self->on_end_(status);
      }
    });
    const MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }

 private:
  boost::asio::io_context& io_;
  const std::unique_ptr<cri::RuntimeService::Stub> stub_;
  const std::function<void()> on_event_;
  const std::function<void(Status)> on_end_;
  bool closed_ = false;  // used on the I/O loop only
  grpc::ClientContext context_;
  cri::GetEventsRequest request_;
  cri::ContainerEventResponse event_;
  std::shared_ptr<Stream> self_;  // while gRPC may call
  Mutex mutex_;
  CondVar changed_;
  bool done_ QRM_GUARDED_BY(mutex_) = false;
};

class Watch final : public EventWatch {
 public:
  explicit Watch(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~Watch() override { stream_->Close(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  const std::shared_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<EventWatch> StartEventWatch(boost::asio::io_context& io,
                                            const std::shared_ptr<grpc::Channel>& channel,
                                            std::function<void()> on_event,
                                            std::function<void(Status)> on_end,
                                            std::function<Status(const Status&)> to_status) {
  auto stream =
      std::make_shared<Stream>(io, channel, std::move(on_event),
                               [on_end = std::move(on_end), to_status = std::move(to_status)](
                                   const Status& status) { on_end(to_status(status)); });
  stream->Begin();
  return std::make_unique<Watch>(std::move(stream));
}

}  // namespace qrm::manager
