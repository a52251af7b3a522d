// A change of the node that is not a decision about a container, for `qrmctl events`.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "api/resource.h"

namespace qrm::checkpoint {

/// The types of decisions about containers.
inline constexpr char kAdmissionEvent[] = "admission";
inline constexpr char kResizeEvent[] = "resize";

/// All types of events. The first two are decisions.
inline constexpr std::array<std::string_view, 13> kEventTypes = {
    kAdmissionEvent, kResizeEvent, "removal", "pool",    "class", "reload", "plugin",
    "driver",        "drift",      "disk",    "restart", "role",  "health"};

struct NodeEvent {
  std::string_view type;  ///< of kEventTypes; outlives the event
  std::string message;    ///< what changed, from what to what
  std::string by;         ///< who asked for it: "uid 0, pid 4711"; empty: qrmd itself did
  // The pod and the container that it is about, if any.
  ContainerKey key;
  std::string pod_namespace;
  std::string pod_name;
};

/// Keeps an event. Must only post.
using NoteEvent = std::function<void(const NodeEvent& event)>;

}  // namespace qrm::checkpoint
