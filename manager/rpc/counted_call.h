// A call whose answer is counted until its client has read it.
#pragma once

#include <cstddef>
#include <memory>

namespace grpc {
class CallbackServerContext;
class ServerUnaryReactor;
class Status;
}  // namespace grpc

namespace qrm::manager {

/// What a call answers, as long as it is in memory for it.
struct CountedAnswer {
  const void* at = nullptr;  ///< one answer at one place, to however many it goes
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;  ///< null: gRPC owns it
};

/// The answer that gRPC has as `message`, and writes as bytes beside it. Cost: linear.
template <typename Message>
CountedAnswer MessageAnswer(const Message& message) {
  constexpr std::size_t kTimesItsBytes = 4;
  return {.at = &message, .bytes = kTimesItsBytes * message.ByteSizeLong()};
}

/// The answers of all servers that are on their way have kMostUnreadBytes at most: beyond, the
/// connection that has left one unread for longest is ended.
class CountedCall {
 public:
  static constexpr std::size_t kMostUnreadBytes = std::size_t{32} << 20;

  /// In the place of `context`'s own reactor. It deletes itself when the answer was read or the
  /// connection has ended.
  static CountedCall& Begin(grpc::CallbackServerContext& context);

  /// What the handler returns.
  virtual grpc::ServerUnaryReactor* reactor() = 0;

  /// Once; the call may be gone when this returns. Threads: any.
  virtual void Answer(const grpc::Status& status, CountedAnswer answer) = 0;

 protected:
  ~CountedCall() = default;
};

}  // namespace qrm::manager
