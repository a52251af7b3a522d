// Notifies of the runtime's container events, without their content.
#pragma once

#include <functional>
#include <memory>

#include "api/base/io_context.h"
#include "manager/runtime/cri/cri_client.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// Begins CRI's GetContainerEvents; see ContainerRuntime::WatchEvents. `to_status` makes the
/// sentence for the end.
///
/// Threads: made and destroyed on the I/O loop, where both callbacks run.
std::unique_ptr<EventWatch> StartEventWatch(boost::asio::io_context& io,
                                            const std::shared_ptr<grpc::Channel>& channel,
                                            std::function<void()> on_event,
                                            std::function<void(Status)> on_end,
                                            std::function<Status(const Status&)> to_status);

}  // namespace qrm::manager
