// One connection to the runtime's NRI socket, from connecting to its end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/io_context.h"
#include "manager/runtime/nri/nri_plugin.h"
#include "manager/runtime/nri/nri_wire.h"
#include "manager/runtime/nri/ttrpc.h"

namespace qrm::manager {

/// Registers, is configured and synchronized, then answers events until the connection ends. The
/// operations in flight keep it alive.
///
/// Threads: the I/O loop.
class NriSession : public std::enable_shared_from_this<NriSession> {
 public:
  /// How the connection ended.
  struct End {
    Status cause;
    bool was_synchronized = false;
    bool answer_was_due = false;  ///< the runtime was waiting for an answer
  };
  using Synchronized = std::function<void(const RuntimeInfo& runtime)>;
  using Ended = std::function<void(const End& end)>;

  /// `io`, `options` and `events` outlive the session.
  NriSession(boost::asio::io_context& io, const NriOptions& options, RuntimeEvents& events);
  ~NriSession();
  NriSession(const NriSession&) = delete;
  NriSession& operator=(const NriSession&) = delete;

  /// Connects; then `synchronized` runs once at most, and `ended` once at the end.
  void Start(Synchronized synchronized, Ended ended);
  /// Ends the connection because of `cause` shortly after the last answer that is due.
  void EndWhenAnswered(Status cause);
  /// Ends the connection; no callback and no event follows.
  void Abandon();

 private:
  struct Timers;
  using Method = void (NriSession::*)(const TtrpcCall& call, const TtrpcReply& reply);
  using AnyThreadReply = std::function<void(StatusOr<std::string>)>;

  static Method FindMethod(const std::string& name);

  void OnConnect(Mux::Socket socket);
  void Register();
  void EndIfAnswered();
  void Finish(const Status& cause);

  void Handle(const TtrpcCall& call, const TtrpcReply& reply);
  void Configure(const TtrpcCall& call, const TtrpcReply& reply);
  void Synchronize(const TtrpcCall& call, const TtrpcReply& reply);
  bool ReadObjects(std::string_view synchronize_request);
  void CreateContainer(const TtrpcCall& call, const TtrpcReply& reply);
  void UpdateContainer(const TtrpcCall& call, const TtrpcReply& reply);
  void StartContainer(const TtrpcCall& call, const TtrpcReply& reply);
  void PrepareStart(const TtrpcCall& call, const TtrpcReply& reply, const nri::PodSandbox& pod,
                    const nri::Container& container);
  void StateChange(const TtrpcCall& call, const TtrpcReply& reply);
  void Shutdown(const TtrpcCall& call, const TtrpcReply& reply);
  /// For the separate RPCs of runtimes with NRI 0.12, and for StopContainer.
  template <nri::Event kEvent>
  void Note(const TtrpcCall& call, const TtrpcReply& reply);

  void Deliver(nri::Event event, const nri::PodSandbox& pod, const nri::Container& container);
  /// A reply for any thread; if it does not come in time, `late` is the answer.
  AnyThreadReply Awaited(const TtrpcCall& call, const TtrpcReply& reply,
                         StatusOr<std::string> late);
  /// How long an answer to `call` may take.
  std::chrono::milliseconds TimeFor(const TtrpcCall& call) const;

  boost::asio::io_context& io_;
  const NriOptions options_;  // a connect under way may outlive its owner
  RuntimeEvents& events_;
  Synchronized synchronized_;
  Ended ended_;
  const std::unique_ptr<Timers> timers_;
  std::shared_ptr<Mux> mux_;
  std::unique_ptr<TtrpcClient> runtime_;
  RuntimeInfo info_;
  std::chrono::milliseconds reply_timeout_;
  std::vector<RuntimePod> pods_;              // of the Synchronize chunks so far
  std::vector<RuntimeContainer> containers_;  // likewise
  bool is_synchronized_ = false;
  int answers_due_ = 0;
  std::optional<Status> ending_;
};

}  // namespace qrm::manager
