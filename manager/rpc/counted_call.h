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

/// An answer that is kept in memory until its client has read it.
struct CountedAnswer {
  const void* at = nullptr;  ///< its address; calls that share an answer have the same one
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;  ///< null: gRPC owns it
};

/// An answer that gRPC keeps as `message` and also as serialized bytes. Cost: linear.
template <typename Message>
CountedAnswer MessageAnswer(const Message& message) {
  constexpr std::size_t kTimesItsBytes = 4;
  return {.at = &message, .bytes = kTimesItsBytes * message.ByteSizeLong()};
}

/// The unread answers of all servers have at most kMostUnreadBytes. Beyond that, the connection
/// with the oldest unread answer is closed.
class CountedCall {
 public:
  static constexpr std::size_t kMostUnreadBytes = std::size_t{32} << 20;

  /// Begins a call that replaces `context`'s default reactor. It deletes itself when the answer was
  /// read or the connection has ended.
  static CountedCall& Begin(grpc::CallbackServerContext& context);

  /// The handler must return this.
  virtual grpc::ServerUnaryReactor* reactor() = 0;

  /// Makes an answer, and calls Answer with it.
  struct Maker {
    virtual ~Maker() = default;
    virtual void Make() = 0;
  };

  /// Lets `maker` make its answer once the unread answers leave room for it. Threads: any; `maker`
  /// may run on another one.
  virtual void WhenRoom(std::shared_ptr<Maker> maker) = 0;

  /// Answers the call, once; the object may be deleted when this returns. Threads: any.
  virtual void Answer(const grpc::Status& status, CountedAnswer answer) = 0;

 protected:
  ~CountedCall() = default;
};

}  // namespace qrm::manager
