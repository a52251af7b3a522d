// The least that an admission can cost: its round trips and its syncs, with nothing between them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm::bench {

/// Serves a plugin with fixed answers, which syncs `record_bytes` at `log_path` for each Allocate.
/// In a separate process: on `socket`, until the process is killed.
[[noreturn]] void ServeFloorPlugin(const std::string& socket, const std::string& log_path,
                                   std::size_t record_bytes);

/// Such plugins, if any, and a caller that asks them for hints, for allocations, and syncs its own
/// log: each round in parallel over gRPC's callback API.
///
/// Threads: one.
class Floor {
 public:
  struct Options {
    std::string directory;
    /// The bytes of an admission in each log: qrmd's first, then the plugins'.
    std::vector<std::size_t> record_bytes;
    ContainerRequest request;  ///< its bytes go over the wire
    std::string program;       ///< runs a plugin, with the words of kFloorPluginFlag
  };
  explicit Floor(const Options& options);
  ~Floor();
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  // The three parts of an admission.
  void CollectHints();
  void Allocate();
  void Commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// `PROGRAM --floor-plugin SOCKET LOG BYTES` is to call ServeFloorPlugin.
inline constexpr char kFloorPluginFlag[] = "--floor-plugin";

}  // namespace qrm::bench
