// One call to a plugin, as those who carry it see it: the same on a socket and inside a process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/sdk/calls/held_allocations.h"

namespace qrm::sdk {
class PluginDriver;
}  // namespace qrm::sdk

namespace qrm::calls {

/// Which thread answers a call.
enum class AnsweredBy {
  kPluginThread,               ///< on which the plugin is asked, one call after another
  kAnyThreadIfQuick,           ///< the one that received it, if the plugin's answers are quick
  kAnyThreadIfQuickAndTaught,  ///< likewise, if it waits for no disk either
  kAnyThread                   ///< the one that received it: the plugin is not asked
};

/// What becomes of a call to a socket that does not listen yet.
enum class BeforeListening { kFails, kWaits };

/// What a call is named, on the wire and in sentences.
struct Method {
  const char* path;    ///< "/package.Service/Method"
  const char* action;  ///< completes "cannot <action> plugin cpu"
  AnsweredBy answered_by = AnsweredBy::kPluginThread;
  BeforeListening before_listening = BeforeListening::kFails;

  /// As in the API: "Method".
  constexpr const char* name() const { return path + std::string_view(path).rfind('/') + 1; }
};

/// Who is to blame for a call that brought no answer that we can use.
enum class Blame {
  kNobody,      ///< the answer is good
  kRefusal,     ///< the plugin answered with an error: its right
  kConnection,  ///< nobody is connected
  kTimeout,     ///< no answer in time
  kProtocol,    ///< the answer breaks the protocol
  kStopping,    ///< we are stopping
};

/// How a call went: `value` is the answer, or a cause without the words "cannot ...".
template <typename T>
struct CallResult {
  StatusOr<T> value;
  Blame blame = Blame::kNobody;
};

/// No arguments, or nothing to say but that it worked.
struct Nothing {};

/// A call on its way. Whoever comes first ends it; it ends once.
///
/// Threads: any. Its callbacks must not block.
class Call {
 public:
  /// Has the last word on how the call went: the status that it ends with.
  using Judge = std::function<Status(const Status& status, Blame blame)>;

  explicit Call(const Method& method) : method_(method) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Method& method() const { return method_; }
  /// Before the call is on its way.
  void set_judge(Judge judge) { judge_ = std::move(judge); }
  bool ended() const { return ended_; }

  /// The request as it is sent.
  virtual std::string Request() const = 0;
  /// Ends the call with the answer whose bytes are `pieces`, one after the other. An answer that
  /// names other nodes than `machine_nodes` breaks the protocol.
  virtual void Take(const Pieces& pieces, const NumaMask& machine_nodes) = 0;
  /// Ends the call with what the plugin of `driver` answers. Threads: as its method says.
  virtual void Serve(sdk::PluginDriver& driver, const NumaMask& machine_nodes) = 0;
  /// Ends the call without an answer.
  virtual void Fail(Status cause, Blame blame) = 0;

 protected:
  /// True for the first who asks, who then ends the call.
  bool MayEnd() { return !ended_.exchange(true); }
  Status Judged(const Status& status, Blame blame) {
    const Judge judge = std::exchange(judge_, {});
    return judge ? judge(status, blame) : status;
  }

 private:
  const Method method_;
  std::atomic<bool> ended_ = false;
  Judge judge_;
};

/// The call that `C` describes: C::kMethod, C::Request and C::Answer. How it is read, written and
/// served stands beside the other calls of its service.
template <typename C>
class CallTo final : public Call {
 public:
  using Result = CallResult<typename C::Answer>;
  using Done = std::function<void(Result)>;

  CallTo(typename C::Request request, Done done)
      : Call(C::kMethod), request_(std::move(request)), done_(std::move(done)) {}

  const typename C::Request& request() const { return request_; }

  std::string Request() const override;
  void Take(const Pieces& pieces, const NumaMask& machine_nodes) override;
  void Serve(sdk::PluginDriver& driver, const NumaMask& machine_nodes) override;
  void Fail(Status cause, Blame blame) override { End({std::move(cause), blame}); }

  void End(Result result) {
    if (!MayEnd()) {
      return;
    }
    const Done done = std::exchange(done_, {});
    if (Status judged = Judged(result.value.status(), result.blame); !judged.ok()) {
      result.value = std::move(judged);
    }
    done(std::move(result));
  }

 private:
  const typename C::Request request_;
  Done done_;
};

/// An answer as it is sent; several calls may share one.
using SharedBytes = std::shared_ptr<const std::string>;

/// A call as the plugin's side serves it.
struct ServedCall {
  Method method;
  /// What the plugin of `driver` answers to the serialized `request`. Errors: kInvalidArgument for
  /// a request that cannot be read; the plugin's. Threads: as the method says.
  StatusOr<SharedBytes> (*answer)(sdk::PluginDriver& driver, std::string_view request);
};

}  // namespace qrm::calls
