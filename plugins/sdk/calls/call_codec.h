// What all calls have in common, on both sides of the wire.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/pieces.h"
#include "api/base/status.h"
#include "plugins/sdk/calls/call.h"

namespace qrm::calls {

/// How the call `C` is encoded, served and checked. Each specialization has
///   Message, Response                                  its protobuf messages
///   Message ToWire(request)                            the caller writes
///   StatusOr<Request> FromWire(message)                the plugin's side reads
///   StatusOr<Answer> Serve(driver, request)            the plugin answers, unless CallTo<C>::Serve
///   does Response AnswerToWire(request, answer)             the plugin's side writes
///   StatusOr<Answer> AnswerFromWire(response, request) the caller reads
///   Status Check(answer, machine_nodes)                the caller checks
/// all static. FromWire fails for an invalid message, Serve for a request that the plugin must not
/// get, Check for an answer that does not fit the machine.
template <typename C>
struct Codec;

/// For calls whose answer has nothing to check.
struct Unchecked {
  template <typename Answer>
  static Status Check(const Answer& /*answer*/, const NumaMask& /*machine_nodes*/) {
    return OkStatus();
  }
};

/// For calls without arguments.
template <typename M>
struct WithoutArguments {
  using Message = M;
  static Message ToWire(const Nothing& /*request*/) { return {}; }
  static StatusOr<Nothing> FromWire(const Message& /*message*/) { return Nothing{}; }
};

/// For calls whose answer has no content.
template <typename R>
struct WithoutAnswer : Unchecked {
  using Response = R;
  template <typename Request>
  static Response AnswerToWire(const Request& /*request*/, const Nothing& /*answer*/) {
    return {};
  }
  template <typename Request>
  static StatusOr<Nothing> AnswerFromWire(const Response& /*response*/,
                                          const Request& /*request*/) {
    return Nothing{};
  }
};

inline Status Unreadable(std::string_view what) {
  return {StatusCode::kInvalidArgument,
          std::string(what).append(" cannot be read (not the message of this call)")};
}

/// Twice as many allocations as the largest nodes have, in one answer.
inline constexpr std::size_t kMostHeld = 20'000;
/// An answer about all containers is parsed in parts: parsed, it takes many times its bytes.
inline constexpr std::size_t kPartBytes = std::size_t{64} << 10;

template <typename Message>
bool Parse(const Pieces& pieces, Message& message) {
  if (pieces.size() != 1) {  // a large message, or one without fields
    return message.ParseFromString(Joined(pieces));
  }
  return message.ParseFromArray(pieces[0].data(), static_cast<int>(pieces[0].size()));
}

/// The result of a call that ended with `answer`.
template <typename Answer>
CallResult<Answer> ResultOf(StatusOr<Answer> answer, Blame blame_for_error) {
  const Blame blame = answer.ok() ? Blame::kNobody : blame_for_error;
  return {std::move(answer), blame};
}

template <typename C>
CallResult<typename C::Answer> Checked(StatusOr<typename C::Answer> answer,
                                       const NumaMask& machine_nodes, Blame blame_for_error) {
  if (answer.ok()) {
    if (Status fits = Codec<C>::Check(*answer, machine_nodes); !fits.ok()) {
      return {std::move(fits), Blame::kProtocol};
    }
  }
  return ResultOf(std::move(answer), blame_for_error);
}

template <typename C>
std::string CallTo<C>::Request() const {
  return Codec<C>::ToWire(request_).SerializeAsString();
}

template <typename C>
void CallTo<C>::Take(const Pieces& pieces, const NumaMask& machine_nodes) {
  typename Codec<C>::Response response;
  if (!Parse(pieces, response)) {
    Fail(Unreadable("its answer"), Blame::kProtocol);
    return;
  }
  End(Checked<C>(Codec<C>::AnswerFromWire(response, request_), machine_nodes, Blame::kProtocol));
}

template <typename C>
StatusOr<typename C::Answer> CallTo<C>::Serve(sdk::PluginDriver& driver,
                                              const typename C::Request& request) {
  return Codec<C>::Serve(driver, request);
}

template <typename C>
StatusOr<SharedBytes> AnswerTo(sdk::PluginDriver& driver, std::string_view request) {
  typename Codec<C>::Message message;
  if (!message.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
    return Unreadable("the request");
  }
  QRM_ASSIGN_OR_RETURN(const auto read, Codec<C>::FromWire(message));
  QRM_ASSIGN_OR_RETURN(const auto answer, CallTo<C>::Serve(driver, read));
  return std::make_shared<const std::string>(
      Codec<C>::AnswerToWire(read, answer).SerializeAsString());
}

template <typename C>
ServedCall Served() {
  return {C::kMethod, &AnswerTo<C>};
}

}  // namespace qrm::calls
