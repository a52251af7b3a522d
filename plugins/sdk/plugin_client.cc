// Makes blocking calls with gRPC's callback API.
#include "plugins/sdk/plugin_client.h"

#include <chrono>

#include "api/base/check.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"

namespace qrm::sdk {
namespace {

constexpr std::chrono::seconds kCallTimeout{10};

}  // namespace

struct PluginClient::Impl {
  explicit Impl(const std::string& socket)
      // The answer to a reconcile covers all containers.
      : channel(rpc::UnixChannel(socket, {.max_message_bytes = -1})) {}

  const std::shared_ptr<grpc::Channel> channel;
  const std::shared_ptr<rpc::CallsInFlight> in_flight = std::make_shared<rpc::CallsInFlight>();
  /// Accepts any node: this manager does not know the machine.
  const NumaMask nodes = NumaMask::Range(0, NumaMask::kMaxIds - 1);
};

PluginClient::PluginClient(const std::string& socket) : impl_(std::make_unique<Impl>(socket)) {}

PluginClient::~PluginClient() {
  impl_->in_flight->StopAndWait();
}

void PluginClient::Send(const std::shared_ptr<calls::Call>& call) {
  const rpc::RawCall raw{.method = call->method().path,
                         .request = call->Request(),
                         .deadline = DeadlineAfter(kCallTimeout)};
  const bool sent = rpc::StartRaw(
      impl_->in_flight, impl_->channel, raw, [call, &nodes = impl_->nodes](const auto& answer) {
        answer.ok() ? call->Take(*answer, nodes)
                    : call->Fail(answer.status(), calls::Blame::kRefusal);
      });
  QRM_CHECK(sent);  // only the destructor stops
}

}  // namespace qrm::sdk
