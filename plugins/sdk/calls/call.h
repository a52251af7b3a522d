// One call to a plugin, in the same form over a socket and inside the process.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/sdk/held_list.h"

namespace qrm::sdk {
class PluginDriver;
}  // namespace qrm::sdk

namespace qrm::calls {

/// Which thread answers a call.
enum class AnsweredBy {
  kPluginThread,               ///< the plugin's thread, one call after another
  kAnyThreadIfQuick,           ///< the receiving thread, if AnswersAreQuick
  kAnyThreadIfQuickAndTaught,  ///< likewise, if it need not wait for the disk either
  kAnyThread                   ///< the receiving thread: the plugin is not called
};

/// What happens to a call to a socket that does not listen yet.
enum class BeforeListening { kFails, kWaits };

/// A call's names on the wire and in errors.
struct Method {
  const char* path;    ///< "/package.Service/Method"
  const char* action;  ///< completes "cannot <action> plugin cpu"
  AnsweredBy answered_by = AnsweredBy::kPluginThread;
  BeforeListening before_listening = BeforeListening::kFails;

  /// The last part of `path`: "Method".
  constexpr const char* name() const { return path + std::string_view(path).rfind('/') + 1; }
};

/// Why a call returned no usable answer.
enum class Blame {
  kNobody,      ///< the answer is good
  kRefusal,     ///< the plugin answered with an error, as it may
  kConnection,  ///< not connected
  kTimeout,     ///< no answer in time
  kProtocol,    ///< the answer breaks the protocol
  kStopping,    ///< the manager is stopping
};

/// A call's result: `value` is the answer, or the cause of an error without the words "cannot ...".
template <typename T>
struct CallResult {
  StatusOr<T> value;
  Blame blame = Blame::kNobody;
};

/// No arguments, or no result except success.
struct Nothing {};

/// A call in progress. It ends once: later attempts to end it have no effect.
///
/// Threads: any. Its callbacks must not block.
class Call {
 public:
  /// Decides the final status of the call.
  using Judge = std::function<Status(const Status& status, Blame blame)>;

  explicit Call(const Method& method) : method_(method) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Method& method() const { return method_; }
  /// Call it before the call is sent.
  void set_judge(Judge judge) { judge_ = std::move(judge); }
  bool ended() const { return ended_; }

  /// The serialized request.
  virtual std::string Request() const = 0;
  /// Ends the call with the answer whose bytes are the concatenated `pieces`. An answer with nodes
  /// outside `machine_nodes` breaks the protocol.
  virtual void Take(const Pieces& pieces, const NumaMask& machine_nodes) = 0;
  /// Ends the call without an answer.
  virtual void Fail(Status cause, Blame blame) = 0;

 protected:
  /// True for the first caller, which then ends the call.
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

/// The call that `C` describes: C::kMethod, C::Request and C::Answer. Its codec is in the file of
/// its service.
template <typename C>
class CallTo final : public Call {
 public:
  using Result = CallResult<typename C::Answer>;
  using Done = std::function<void(Result)>;

  CallTo(typename C::Request request, Done done)
      : Call(C::kMethod), request_(std::move(request)), done_(std::move(done)) {}

  const typename C::Request& request() const { return request_; }

  /// The answer of the plugin in `driver` to `request`. Errors: the plugin's. Threads: see
  /// Method::answered_by.
  static StatusOr<typename C::Answer> Serve(sdk::PluginDriver& driver,
                                            const typename C::Request& request);

  std::string Request() const override;
  void Take(const Pieces& pieces, const NumaMask& machine_nodes) override;
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

/// A call on the plugin's side.
struct ServedCall {
  Method method;
  /// The answer of the plugin in `driver` to the serialized `request`. Errors: kInvalidArgument for
  /// a request that cannot be read; the plugin's. Threads: see Method::answered_by.
  StatusOr<std::string> (*answer)(sdk::PluginDriver& driver, std::string_view request);
};

}  // namespace qrm::calls
