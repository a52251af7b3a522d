// A counter and an account of lines for each kind.
#include "api/base/rejected.h"

#include <array>
#include <atomic>
#include <chrono>
#include <optional>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/repeated_lines.h"

namespace qrm {
namespace {

enum class In { kDaemon, kScheduler, kBoth };

struct Kind {
  const char* name;
  In in;
};

constexpr std::size_t kKindCount = static_cast<std::size_t>(Rejected::kCount);

/// In the order of the enumerators.
constexpr std::array<Kind, kKindCount> kKinds = {{
    {"socket_user", In::kDaemon},
    {"socket_connections", In::kDaemon},
    {"grpc_calls", In::kDaemon},
    {"grpc_frames", In::kDaemon},
    {"grpc_unfinished", In::kDaemon},
    {"grpc_unread", In::kDaemon},
    {"grpc_compressed", In::kDaemon},
    {"plugin_path", In::kDaemon},
    {"http_connections", In::kBoth},
    {"http_request", In::kBoth},
    {"tls_handshake", In::kBoth},
    {"http_token", In::kDaemon},
    {"web_page", In::kBoth},
    {"json", In::kBoth},
    {"yaml", In::kBoth},
    {"node_annotation", In::kScheduler},
    {"placement", In::kScheduler},
}};

constinit std::array<std::atomic<uint64_t>, kKindCount> counts{};

/// The lines of one kind.
struct Lines {
  Mutex mutex;
  RepeatedLines lines QRM_GUARDED_BY(mutex){kMostRejectedLines};
};

Lines& LinesOf(std::size_t kind) {
  // Never destroyed: gRPC's threads may outlive main.
  static auto* const lines = new std::array<Lines, kKindCount>();
  return (*lines)[kind];
}

}  // namespace

void Reject(Rejected kind, const std::string& error) {
  const auto index = static_cast<std::size_t>(kind);
  ++counts[index];
  std::optional<uint64_t> before;
  {
    Lines& lines = LinesOf(index);
    const MutexLock lock(lines.mutex);
    before = lines.lines.Take(error, std::chrono::steady_clock::now());
  }
  if (before.has_value()) {
    log::Warning("input rejected",
                 {{"kind", kKinds[index].name}, {"error", error}, {"equal_ones_before", *before}});
  }
}

uint64_t RejectedSoFar(Rejected kind) {
  return counts[static_cast<std::size_t>(kind)];
}

std::vector<RejectedCount> RejectedByKind(RejectedBy program) {
  const In other = program == RejectedBy::kDaemon ? In::kScheduler : In::kDaemon;
  std::vector<RejectedCount> kinds;
  for (std::size_t i = 0; i < kKindCount; ++i) {
    if (kKinds[i].in != other) {
      kinds.push_back({.kind = kKinds[i].name, .count = counts[i]});
    }
  }
  return kinds;
}

}  // namespace qrm
