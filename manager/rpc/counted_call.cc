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
  static auto* const unread = new UnreadAnswers(CountedCall::kMostUnreadBytes);
  return *unread;
}

class Call final : public CountedCall, public grpc::ServerUnaryReactor {
 public:
  explicit Call(std::string peer) : peer_(std::move(peer)) {}

  grpc::ServerUnaryReactor* reactor() override { return this; }

  void Answer(const grpc::Status& status, CountedAnswer answer) override {
    owner_ = std::move(answer.owner);
    const UnreadAnswers::Added added = AllUnread().Add(peer_, answer.at, answer.bytes);
    number_ = added.number;
    if (!added.to_disconnect.empty()) {
      EndConnection(DescriptorOf(added.to_disconnect));
    }
    Finish(status);
  }

  void OnDone() override {
    AllUnread().Remove(number_);
    delete this;
  }

 private:
  const std::string peer_;
  std::shared_ptr<const void> owner_;
  uint64_t number_ = 0;
};

}  // namespace

CountedCall& CountedCall::Begin(grpc::CallbackServerContext& context) {
  return *new Call(context.peer());
}

}  // namespace qrm::manager
