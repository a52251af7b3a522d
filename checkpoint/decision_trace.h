// Decisions about containers and other events, as lines of the history, and which of many the
// history keeps.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/resource.h"

namespace qrm::checkpoint {

/// Why a container was admitted or rejected; `json` is the document behind `qrmctl explain`. Or
/// another event: then `type` is that of a NodeEvent, and `json` has its "message" and "by".
struct DecisionTrace {
  ContainerKey key;
  std::string pod_namespace;
  std::string pod_name;
  std::chrono::system_clock::time_point time;
  bool admitted = false;
  std::optional<std::chrono::nanoseconds> commit;  ///< how long its commit took
  std::string json;
  std::string type;  ///< empty: a decision

  bool IsDecision() const { return type.empty(); }
  bool operator==(const DecisionTrace&) const = default;
};

/// One JSON object, with the end of its line.
std::string ToLine(const DecisionTrace& trace);
/// Of a line without its end; absent: it cannot be read.
std::optional<DecisionTrace> FromLine(std::string_view line);

/// `traces`, oldest first. Of the traces that reject, or skip, one container for one reason until
/// it is admitted, only the latest stays. Its document counts the others in "equal_ones_before" and
/// has the first one's time in "first_unix_millis". Reasons that differ only in numbers are equal.
/// Cost: reads the documents of all rejected and skipped containers.
std::vector<DecisionTrace> Folded(std::vector<DecisionTrace> traces);

/// Whether the pod of that UID is on the node.
using IsOnNode = std::function<bool(const std::string& pod_uid)>;

/// What is left of a history; whatever it allows, why the containers of pods on the node were
/// admitted stays, within `bytes`.
struct HistoryBounds {
  std::size_t traces;  ///< of decisions; and as many other events
  std::size_t bytes;
};

/// `traces`, oldest first, without the oldest that are too many. Of each container of a pod that is
/// on the node, the latest decision and the latest admission are the last to go.
std::vector<DecisionTrace> Latest(std::vector<DecisionTrace> traces, const IsOnNode& is_on_node,
                                  HistoryBounds bounds);

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
