// The container runtime's end of an NRI connection, with a script's behaviour: a peer written
// separately from the code under test.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/proto/nri/v1alpha1/nri.pb.h"
#include "api/proto/ttrpc/ttrpc.pb.h"
#include "test/support/go_reader.h"

namespace qrm::test {

namespace nri = ::nri::pkg::api::v1alpha1;

struct ScriptedRuntimeOptions {
  std::string name = "containerd";
  std::string version = "v1.7.24";
  std::string nri_version;
  int64_t request_timeout_ms = 0;  ///< as Configure sends it; 0 as before NRI 0.8
  int32_t known_events = 0x7ff;    ///< a plugin that asks for others is rejected
  std::vector<nri::PodSandbox> pods;
  std::vector<nri::Container> containers;
  int synchronize_chunks = 1;
  /// The first connection ends after that many chunks; 0: it goes on.
  int cut_after_chunks = 0;
  /// When the registration is answered: before Configure and Synchronize come, or after them.
  enum class Registration {
    kAnsweredFirst,
    kAnsweredLast,
    kRefused
  } registration = Registration::kAnsweredFirst;
  /// How messages are cut: as Go does, or into mux frames and socket writes of a few bytes.
  enum class Framing { kAsGo, kFragments } framing = Framing::kAsGo;
};

/// Listens, and treats every plugin that connects as containerd does: takes its registration,
/// configures and synchronizes it, and cuts it off when it is late or breaks the protocol. A
/// frame that Go's reader could not take is a violation.
///
/// Threads: any; calls block.
class ScriptedRuntime {
 public:
  explicit ScriptedRuntime(std::string socket, ScriptedRuntimeOptions options = {});
  ~ScriptedRuntime();
  ScriptedRuntime(const ScriptedRuntime&) = delete;
  ScriptedRuntime& operator=(const ScriptedRuntime&) = delete;

  /// How many synchronizations have succeeded.
  int synchronizations() const;
  /// True once `count` synchronizations have succeeded.
  bool WaitForSynchronizations(int count);
  /// How many plugins have connected.
  int connections() const { return connections_; }
  nri::RegisterPluginRequest registration() const;
  int32_t subscribed_events() const;
  std::vector<nri::SynchronizeResponse> synchronize_responses() const;
  /// What the plugin called except its registration: no runtime wants that.
  std::vector<std::string> unsolicited() const;
  /// The error of Go's reader; empty when there is none.
  std::string violation() const;

  /// Calls the plugin. Errors: the plugin's own; kDeadlineExceeded after `timeout`, and the plugin
  /// is cut off; kUnavailable without a plugin.
  StatusOr<std::string> Call(const std::string& method, const std::string& request,
                             std::chrono::milliseconds timeout = std::chrono::seconds(2));
  /// The same with any envelope, on a stream of the caller's choice.
  StatusOr<std::string> CallRaw(const ttrpc::Request& request,
                                std::optional<uint32_t> on_stream = std::nullopt,
                                std::chrono::milliseconds timeout = std::chrono::seconds(2));
  StatusOr<nri::CreateContainerResponse> CreateContainer(
      const nri::PodSandbox& pod, const nri::Container& container,
      std::chrono::milliseconds timeout = std::chrono::seconds(2));
  /// Sends an event as runtimes before NRI 0.12 do.
  Status StateChange(nri::Event event, const nri::PodSandbox& pod,
                     const nri::Container& container = {},
                     std::chrono::milliseconds timeout = std::chrono::seconds(2));
  /// What exists, as synchronizations send it: PodSandbox and Container messages, serialized.
  struct Inventory {
    std::vector<std::string> pods;
    std::vector<std::string> containers;
  };
  /// Every synchronization calls `take` instead of the options, on a thread of this object.
  void SetInventory(std::function<Inventory()> take);
  /// Sends bytes as they are.
  void SendRaw(std::string_view bytes);
  /// Disconnects the plugin.
  void Disconnect();

 private:
  /// A call that waits for its answer, and is woken by no other answer: many clients must cost the
  /// node no more than one.
  struct Waiting {
    CondVar changed;
    std::optional<ttrpc::Response> response;
    uint32_t stream = 0;
    int connection = 0;
  };

  void AcceptLoop();
  void Serve();
  void Greet(uint32_t stream);
  bool ReadFrame(std::map<uint32_t, GoReader>& readers);
  void OnMessage(uint32_t connection, const GoMessage& message);
  Status Ask(const ttrpc::Request& request, std::optional<uint32_t> stream, Waiting& waiting);
  void Write(uint32_t connection, uint32_t stream, uint8_t type, const std::string& data)
      QRM_REQUIRES(write_mutex_);
  void Send(uint32_t connection, uint32_t stream, uint8_t type, const std::string& data);
  void SendFrame(uint32_t connection, std::string_view payload);
  void SendPieces(std::string_view bytes, std::size_t piece);
  bool Synchronize();

  const std::string socket_;
  const ScriptedRuntimeOptions options_;
  int listener_ = -1;
  std::atomic<int> connections_ = 0;

  Mutex write_mutex_;  // whole messages only
  mutable Mutex mutex_;
  mutable CondVar changed_;
  int peer_ QRM_GUARDED_BY(mutex_) = -1;
  bool stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::function<Inventory()> take_inventory_ QRM_GUARDED_BY(mutex_);
  uint32_t next_stream_ QRM_GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, Waiting*> waiting_ QRM_GUARDED_BY(mutex_);  // by their streams
  nri::RegisterPluginRequest registration_ QRM_GUARDED_BY(mutex_);
  int32_t subscribed_ QRM_GUARDED_BY(mutex_) = 0;
  int synchronizations_ QRM_GUARDED_BY(mutex_) = 0;
  std::vector<nri::SynchronizeResponse> synchronize_responses_ QRM_GUARDED_BY(mutex_);
  std::string violation_ QRM_GUARDED_BY(mutex_);
  std::vector<std::string> unsolicited_ QRM_GUARDED_BY(mutex_);

  std::thread greeter_;
  std::thread acceptor_;
};

}  // namespace qrm::test
