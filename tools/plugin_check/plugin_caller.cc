// Waits for a plugin that was started by asking it again and again.
#include "tools/plugin_check/plugin_caller.h"

#include <thread>

#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {
namespace {

/// For a plugin that is started to be ready, in answers' timeouts.
constexpr int kStartLimit = 5;
constexpr std::chrono::milliseconds kStartPoll{20};

}  // namespace

PluginCaller::PluginCaller(Options options)
    : options_(std::move(options)),
      process_(options_.command),
      in_flight_(std::make_shared<rpc::CallsInFlight>()),
      client_(Connect()) {}

PluginCaller::~PluginCaller() {
  in_flight_->StopAndWait();
}

// Source: our SDK answers with INTERNAL, gRPC for Python with UNKNOWN and this text. Other plugins
// reject with UNKNOWN, as Go's errors are sent.
bool PluginCaller::IsException(const Status& status) {
  return status.code() == StatusCode::kInternal ||
         (status.code() == StatusCode::kUnknown &&
          MessageOf(status).starts_with("Exception calling application"));
}

std::unique_ptr<GrpcPluginClient> PluginCaller::Connect() const {
  return std::make_unique<GrpcPluginClient>(options_.socket, options_.machine_nodes, in_flight_);
}

Status PluginCaller::RunAnew() {
  process_.Kill();
  QRM_RETURN_IF_ERROR(process_.Start());
  const Deadline limit = DeadlineAfter(kStartLimit * options_.timeout);
  for (;;) {
    client_ = Connect();
    Status answered = Ask<calls::GetOptions>({}).status();
    if (answered.ok() || refused_ || std::chrono::steady_clock::now() >= limit) {
      return answered;
    }
    std::this_thread::sleep_for(kStartPoll);
  }
}

}  // namespace qrm::manager
