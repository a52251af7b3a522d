// Helps doubles of manager::Plugins to answer calls.
#pragma once

#include <memory>
#include <utility>

#include "plugins/sdk/calls/call.h"

namespace qrm::test {

/// `call` as a call of type `C`; null when it is another.
template <typename C>
std::shared_ptr<calls::CallTo<C>> As(const std::shared_ptr<calls::Call>& call) {
  return std::dynamic_pointer_cast<calls::CallTo<C>>(call);
}

/// Ends `call` with what `answer` makes of its request, if it is of type `C`.
template <typename C, typename Answer>
bool AnswerIf(const std::shared_ptr<calls::Call>& call, const Answer& answer) {
  const auto asked = As<C>(call);
  if (asked != nullptr) {
    asked->End({answer(asked->request())});
  }
  return asked != nullptr;
}

}  // namespace qrm::test
