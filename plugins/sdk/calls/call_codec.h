// What all calls have in common, on both sides of the wire.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/base/pieces.h"
#include "api/base/status.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/call.h"

namespace qrm::calls {

/// How the call `C` is encoded, served and checked. Each specialization has
///   Message, Response                                  its protobuf messages
///   Message ToWire(request)                            the caller writes
///   StatusOr<Request> FromWire(message)                the plugin's side reads
///   StatusOr<Answer> Serve(driver, request)            the plugin answers, unless CallTo<C>::Serve
///                                                      is specialized
///   Response AnswerToWire(answer)                      the plugin's side writes
///   StatusOr<Answer> AnswerFromWire(response)          the caller reads
///   Status Check(answer, machine_nodes)                the caller checks
/// all static. What is Nothing has no functions, and Serve then returns a Status. The functions of
/// the answer may take the request, too: AnswerToWire first, AnswerFromWire last. FromWire fails
/// for an invalid message, Serve for a request that the plugin must not get, Check, which may be
/// left out, for an answer that does not fit the machine.
template <typename C>
struct Codec;

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
CallResult<Answer> ResultOf(StatusOr<Answer> answer) {
  const Blame blame = answer.ok() ? Blame::kNobody : Blame::kProtocol;
  return {std::move(answer), blame};
}

template <typename C>
StatusOr<typename C::Answer> AnswerIn(const typename Codec<C>::Response& response,
                                      const typename C::Request& request,
                                      const NumaMask& machine_nodes) {
  if constexpr (std::is_same_v<typename C::Answer, Nothing>) {
    return Nothing{};
  } else {
    StatusOr<typename C::Answer> answer = [&]() -> StatusOr<typename C::Answer> {
      if constexpr (requires { Codec<C>::AnswerFromWire(response); }) {
        return Codec<C>::AnswerFromWire(response);
      } else {
        return Codec<C>::AnswerFromWire(response, request);
      }
    }();
    if constexpr (requires { Codec<C>::Check(*answer, machine_nodes); }) {
      QRM_RETURN_IF_ERROR(answer.ok() ? Codec<C>::Check(*answer, machine_nodes) : OkStatus());
    }
    return answer;
  }
}

template <typename C>
std::string CallTo<C>::Request() const {
  if constexpr (std::is_same_v<typename C::Request, Nothing>) {
    return "";
  } else {
    return Codec<C>::ToWire(request_).SerializeAsString();
  }
}

template <typename C>
void CallTo<C>::Take(const Pieces& pieces, const NumaMask& machine_nodes) {
  typename Codec<C>::Response response;
  if (!Parse(pieces, response)) {
    Fail(Unreadable("its answer"), Blame::kProtocol);
    return;
  }
  if constexpr (requires {
                  response.err();
                }) {  // a compute driver rejects a container in its answer
    if (!response.err().empty()) {
      Fail(Status(StatusCode::kFailedPrecondition, OneLine(response.err())), Blame::kRefusal);
      return;
    }
  }
  End(ResultOf(AnswerIn<C>(response, request_, machine_nodes)));
}

template <typename C>
StatusOr<typename C::Answer> CallTo<C>::Serve(sdk::PluginDriver& driver,
                                              const typename C::Request& request) {
  if constexpr (std::is_same_v<typename C::Answer, Nothing>) {
    QRM_RETURN_IF_ERROR(Codec<C>::Serve(driver, request));
    return Nothing{};
  } else if constexpr (requires { Codec<C>::Serve(driver, request); }) {
    return Codec<C>::Serve(driver, request);
  } else {
    return Codec<C>::Serve(driver);
  }
}

template <typename C>
StatusOr<std::string> AnswerTo(sdk::PluginDriver& driver, std::string_view bytes) {
  typename Codec<C>::Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Unreadable("the request");
  }
  typename C::Request request;
  if constexpr (!std::is_same_v<typename C::Request, Nothing>) {
    QRM_ASSIGN_OR_RETURN(request, StatusOr<typename C::Request>(Codec<C>::FromWire(message)));
  }
  QRM_ASSIGN_OR_RETURN(const auto answer, CallTo<C>::Serve(driver, request));
  if constexpr (std::is_same_v<typename C::Answer, Nothing>) {
    return std::string();
  } else if constexpr (requires { Codec<C>::AnswerToWire(answer); }) {
    return Codec<C>::AnswerToWire(answer).SerializeAsString();
  } else {
    return Codec<C>::AnswerToWire(request, answer).SerializeAsString();
  }
}

template <typename C>
ServedCall Served() {
  return {C::kMethod, &AnswerTo<C>};
}

}  // namespace qrm::calls
