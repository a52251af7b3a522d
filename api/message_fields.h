// Reads a large serialized message field by field, so that it never exists as one object.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// Takes a field of a message that has a length: a text, bytes or a message. False: not wanted.
using TakeField = std::function<bool(int number, std::string_view bytes)>;

/// Gives `take` the fields of `message` that have a length, in their order, as views of `message`.
/// Returns all that was not taken, serialized; nothing for bytes that are no message.
/// Source: Protocol Buffers, Encoding.
std::optional<std::string> TakeFields(std::string_view message, const TakeField& take);

/// Cuts `message` between its fields into messages of about `bytes`, or of one field that is
/// larger: views of `message` that are `message` when they are merged. Nothing for bytes that are
/// no message.
std::optional<std::vector<std::string_view>> PartsOf(std::string_view message, std::size_t bytes);

}  // namespace qrm
