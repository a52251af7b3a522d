// Runs one gRPC server for each socket, since a running server cannot get a new socket. It serves
// the tables of calls, with one generic method instead of generated code for each call.
#include "plugins/sdk/host.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/service_type.h>

#include "api/base/errorf.h"
#include "api/base/task_thread.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"
#include "api/rpc/request_bounds.h"
#include "plugins/sdk/calls/class_calls.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/socket_file.h"

namespace qrm::sdk {
namespace {

using calls::ServedCall;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

std::string_view BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

/// Every call that plugins serve (resourceplugin.v1alpha1.ResourcePlugin, qrm.v1.PluginExtensions,
/// qrm.v1.ClassPlugin, cci.v1alpha1.CCIDriver and pluginregistration.Registration), over `driver`,
/// which must have started. It is called on `thread`, or on another thread while `thread` is idle.
/// The methods belong to several services: their names are whole paths.
class PluginService final : public grpc::Service {
 public:
  PluginService(TaskThread& thread, PluginDriver& driver) : thread_(thread), driver_(driver) {
    for (const auto& served : {calls::PluginCalls(), calls::ExtensionCalls(), calls::ClassCalls(),
                               calls::ComputeCalls(), calls::RegistrationCalls()}) {
      for (const ServedCall& call : served) {
        Add(call);
      }
    }
  }

 private:
  // Source: what protoc's gRPC plugin generates for WithRawCallbackMethod_<Method>.
  void Add(const ServedCall& call) {
    using Handler = grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod(call.method.path,
                                                   grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRawCallback(
        count_++, new Handler([this, call](Context* context, const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) {
          return Serve(call, *context, *request, *response);
        }));
  }

  Reactor* Serve(const ServedCall& call, Context& context, const grpc::ByteBuffer& request,
                 grpc::ByteBuffer& response) {
    Reactor* reactor = context.DefaultReactor();
    const auto work = [this, answer = call.answer, reactor, &context, &request, &response] {
      reactor->Finish(context.IsCancelled() ? grpc::Status::CANCELLED
                                            : Answer(answer, request, response));
    };
    using calls::AnsweredBy;
    const AnsweredBy by = call.method.answered_by;
    const bool is_quick = driver_.answers_are_quick() &&
                          (by == AnsweredBy::kAnyThreadIfQuick ||
                           (by == AnsweredBy::kAnyThreadIfQuickAndTaught && driver_.is_taught()));
    if (by == AnsweredBy::kAnyThread) {
      work();
    } else {
      is_quick ? thread_.Dispatch(work) : thread_.Post(work);
    }
    return reactor;
  }

  grpc::Status Answer(decltype(ServedCall::answer) answer, const grpc::ByteBuffer& request,
                      grpc::ByteBuffer& response) {
    grpc::Slice whole;
    if (const grpc::Status read = request.DumpToSingleSlice(&whole); !read.ok()) {
      return read;
    }
    const StatusOr<std::string> answered = answer(driver_, BytesOf(whole));
    if (answered.ok()) {
      const grpc::Slice slice(*answered);
      response = grpc::ByteBuffer(&slice, 1);
    }
    return rpc::ToGrpc(answered.status());
  }

  TaskThread& thread_;
  PluginDriver& driver_;
  int count_ = 0;
};

/// How long a call in progress may take at shutdown before it is cancelled.
constexpr std::chrono::seconds kStopGrace{2};
/// The manager runs as root, or as the plugin's own user.
constexpr mode_t kSocketMode = 0600;
/// A pod's labels and annotations have 256 KiB each at most.
constexpr int kMaxRequestBytes = 4 << 20;

void ShutDown(std::unique_ptr<grpc::Server> server) {
  if (server != nullptr) {
    server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  }
}

}  // namespace

struct PluginHost::Impl {
  Impl(ResourcePlugin& served, const std::string& resource, std::unique_ptr<PluginState> state,
       const std::string& state_dir)
      : plugin(served),
        driver(served, resource, std::move(state), state_dir),
        service(thread, driver) {}

  ~Impl() {
    if (socket_id.has_value() && FindFile(socket_path) == socket_id) {
      ::unlink(socket_path.c_str());
    }
    ShutDown(std::move(server));
    plugin.changes().Connect({});
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// A server of all calls on the socket at `path`; null if the socket cannot be created.
  std::unique_ptr<grpc::Server> StartServer(const std::string& path) {
    KeepGrpcCallbackThreads();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    rpc::BoundRequests(builder, kMaxRequestBytes);
    builder.RegisterService(&service);
    return builder.BuildAndStart();
  }

  ResourcePlugin& plugin;
  PluginDriver driver;
  TaskThread thread;
  PluginService service;
  std::string socket_path;
  std::optional<FileId> socket_id;
  std::unique_ptr<grpc::Server> server;
};

StatusOr<std::unique_ptr<PluginHost>> PluginHost::Create(ResourcePlugin& plugin,
                                                         const std::string& resource,
                                                         std::unique_ptr<PluginState> state,
                                                         const std::string& state_dir) {
  QRM_RETURN_IF_ERROR(CheckResourceName(resource));
  auto impl = std::make_unique<Impl>(plugin, resource, std::move(state), state_dir);
  Status started;
  impl->thread.Run([&] { started = impl->driver.Start(); });
  QRM_RETURN_IF_ERROR(started);
  return std::unique_ptr<PluginHost>(new PluginHost(std::move(impl)));
}

PluginHost::PluginHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PluginHost::~PluginHost() = default;

const std::string& PluginHost::resource() const {
  return impl_->driver.resource();
}

const PluginOptions& PluginHost::options() const {
  return impl_->driver.options();
}

Status PluginHost::Listen(const std::string& path) {
  QRM_ASSIGN_OR_RETURN(const std::string temporary, TemporarySocketPath(path));
  std::unique_ptr<grpc::Server> server = impl_->StartServer(temporary);
  if (server == nullptr) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot listen on {}: cannot create a socket in the directory; make it writable",
                  path);
  }
  ::chmod(temporary.c_str(), kSocketMode);
  const std::optional<FileId> id = FindFile(temporary);
  if (const Status placed = PlaceSocket(temporary, path); !placed.ok()) {
    ShutDown(std::move(server));
    ::unlink(temporary.c_str());
    return placed;
  }
  impl_->socket_path = path;
  impl_->socket_id = id;
  ShutDown(std::exchange(impl_->server, std::move(server)));
  return OkStatus();
}

void PluginHost::OnChanged(std::function<void()> listener) {
  impl_->plugin.changes().Connect(std::move(listener));
}

Status PluginHost::Replace(std::unique_ptr<ResourcePlugin> next) {
  Status ready;
  impl_->thread.Run([&] {
    ready = impl_->driver.Prepare(*next);
    if (ready.ok()) {
      impl_->driver.Replace(std::move(next));
    }
  });
  return ready;
}

bool PluginHost::SocketInPlace() const {
  return impl_->socket_id.has_value() && FindFile(impl_->socket_path) == impl_->socket_id;
}

}  // namespace qrm::sdk
