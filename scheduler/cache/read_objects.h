// Reads pods and nodes from the JSON of the API server, of a scheduler's question or of a trace.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// The pod of a v1 Pod object. Errors: kInvalidArgument naming the pod, the field, its value and
/// what is allowed.
StatusOr<Pod> ReadPod(const nlohmann::json& object);

/// The node of a v1 Node object. Errors: as ReadPod.
StatusOr<Node> ReadNode(const nlohmann::json& object);

/// The amounts of a resource list, such as `{"cpu": "100m"}`; a number stands for itself. Errors:
/// kInvalidArgument with the resource and its value.
StatusOr<Amounts> ReadAmounts(const nlohmann::json& list);

/// The text at `key` of a mapping; empty when `object` has none. Errors: kInvalidArgument when it
/// is not a text.
StatusOr<std::string> ReadText(const nlohmann::json& object, const char* key);

/// The text, or the amount (a number or a quantity), at a JSON pointer of a custom resource such as
/// "/spec/nodeName". Empty or absent when there is none: the API server checks custom resources
/// against their schema.
std::string TextAt(const nlohmann::json& body, const std::string& pointer);
std::optional<double> AmountAt(const nlohmann::json& body, const std::string& pointer);

}  // namespace qrm::scheduler
