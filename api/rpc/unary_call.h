// One call on a channel: it owns all that gRPC works on, and ends with its owner.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "api/base/clock.h"
#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/rpc/calls_in_flight.h"
#include "api/rpc/grpc_status.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace qrm::rpc {

/// A context whose call ends at `deadline`.
std::shared_ptr<grpc::ClientContext> NewContext(Deadline deadline);
/// Ends the call of `context`, if it is under way. Threads: any.
void Cancel(grpc::ClientContext& context);

/// What gRPC reads and writes until the call's callback has run.
template <typename Request, typename Response>
struct UnaryCall {
  std::shared_ptr<grpc::ClientContext> context;
  Request request;
  Response response;
};

/// Has `send` send `call`, as one of `calls`; `done` gets the answer. False, and nothing else
/// happens, when `calls` has stopped.
template <typename Request, typename Response, typename Send, typename Done>
[[nodiscard]] bool StartBy(const Send& send, std::shared_ptr<CallsInFlight> calls,
                           std::shared_ptr<UnaryCall<Request, Response>> call, Done done) {
  const auto id = calls->Enter([context = call->context] { Cancel(*context); });
  if (!id.has_value()) {
    return false;
  }
  UnaryCall<Request, Response>& started = *call;
  // The callback's objects are destroyed before `calls` learns of its end: the stopping thread may
  // then destroy what they used.
  auto ended = [calls = std::move(calls), id = *id, call = std::move(call),
                done = std::move(done)](const grpc::Status& status) mutable {
    {
      const auto last_call = std::move(call);
      const auto last_done = std::move(done);
      last_done(FromGrpc(status), last_call->response);
    }
    calls->Leave(id);
  };
  send(started, std::move(ended));
  return true;
}

/// A call ends at `deadline` at the latest, and earlier when `calls` stops.
struct CallEnd {
  const std::shared_ptr<CallsInFlight>& calls;
  Deadline deadline;
};

/// Calls `method` of the generated `stub`, as StartBy does; `done` takes a StatusOr<Response> once,
/// on a thread of gRPC, and must not block. (The stubs overload each method with a reactor.)
template <typename Stub, typename Async, typename Request, typename Response, typename Done>
[[nodiscard]] bool StartUnary(const CallEnd& end, Stub* stub,
                              void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                    std::function<void(grpc::Status)>),
                              std::type_identity_t<Request> request, Done done) {
  auto call = std::make_shared<UnaryCall<Request, Response>>();
  call->context = NewContext(end.deadline);
  call->request = std::move(request);
  return StartBy(
      [&](UnaryCall<Request, Response>& started, auto ended) {
        (stub->*method)(started.context.get(), &started.request, &started.response,
                        std::move(ended));
      },
      end.calls, std::move(call),
      [done = std::move(done)](const Status& status, Response& response) {
        done(status.ok() ? StatusOr<Response>(std::move(response)) : StatusOr<Response>(status));
      });
}

/// Whether a call may wait for a peer that does not listen yet, or fails at once.
enum class Peer { kListens, kIsAwaited };

/// A call whose messages gRPC takes as bytes.
struct RawCall {
  const char* method = nullptr;  ///< "/package.Service/Method", a literal
  std::string request;           ///< the serialized message
  Deadline deadline;
  Peer peer = Peer::kListens;
};

/// Sends `call` on `channel`; `done` gets the answer, whose bytes live as long as its call.
[[nodiscard]] bool StartRaw(const std::shared_ptr<CallsInFlight>& calls,
                            const std::shared_ptr<grpc::Channel>& channel, const RawCall& call,
                            std::function<void(const StatusOr<Pieces>&)> done);

}  // namespace qrm::rpc
