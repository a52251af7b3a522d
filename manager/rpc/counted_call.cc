// Stops counting an answer when gRPC has finished its call.
#include "manager/rpc/counted_call.h"

#include <cstdint>
#include <string>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "manager/rpc/guarded_reads.h"
#include "manager/rpc/unix_server.h"
#include "manager/rpc/unread_answers.h"

namespace qrm::manager {
namespace {

/// It is never destroyed: gRPC's threads may outlive main.
UnreadAnswers& AllUnread() {
  static auto* const unread =
      new UnreadAnswers(CountedCall::kMostUnreadBytes,
                        [](const std::string& peer) { EndConnection(DescriptorOf(peer)); });
  return *unread;
}

class Call final : public CountedCall, public grpc::ServerUnaryReactor {
 public:
  explicit Call(const grpc::CallbackServerContext& context)
      : context_(context), peer_(context.peer()) {}

  grpc::ServerUnaryReactor* reactor() override { return this; }

  void WhenRoom(std::shared_ptr<Maker> maker) override {
    AllUnread().WhenRoom([this, maker = std::move(maker)] {
      if (context_.IsCancelled()) {
        Answer(grpc::Status::CANCELLED, {});
      } else {
        maker->Make();
      }
    });
  }

  void Answer(const grpc::Status& status, CountedAnswer answer) override {
    owner_ = std::move(answer.owner);
    number_ = AllUnread().Add(peer_, answer.at, answer.bytes);
    Finish(status);
  }

  void OnDone() override {
    AllUnread().Remove(number_);
    delete this;
  }

 private:
  const grpc::CallbackServerContext& context_;  // lives until OnDone
  const std::string peer_;
  std::shared_ptr<const void> owner_;
  uint64_t number_ = 0;
};

}  // namespace

CountedCall& CountedCall::Begin(grpc::CallbackServerContext& context) {
  return *new Call(context);
}

}  // namespace qrm::manager
