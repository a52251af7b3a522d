// Serves the tables of calls, with one generic method instead of generated code for each call. A
// call that its caller has cancelled is not started.
#include "plugins/sdk/services.h"

#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/service_type.h>

#include "api/rpc/grpc_status.h"
#include "plugins/sdk/calls/class_calls.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"

namespace qrm::sdk {
namespace {

using calls::ServedCall;
using calls::SharedBytes;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

/// A buffer that shares `bytes`.
grpc::ByteBuffer BufferOf(const SharedBytes& bytes) {
  auto* const owner = new SharedBytes(bytes);
  const auto release = [](void* data) { delete static_cast<SharedBytes*>(data); };
  const grpc::Slice slice(const_cast<char*>(bytes->data()), bytes->size(), release, owner);
  return {&slice, 1};
}

std::string_view BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

/// The methods may belong to several services of the API: their names are whole paths.
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
    switch (call.method.answered_by) {
      case calls::AnsweredBy::kAnyThread:
        work();
        break;
      case calls::AnsweredBy::kAnyThreadIfQuick:
        driver_.answers_are_quick() ? thread_.Dispatch(work) : thread_.Post(work);
        break;
      case calls::AnsweredBy::kAnyThreadIfQuickAndTaught:
        driver_.answers_are_quick() && driver_.is_taught() ? thread_.Dispatch(work)
                                                           : thread_.Post(work);
        break;
      case calls::AnsweredBy::kPluginThread:
        thread_.Post(work);
        break;
    }
    return reactor;
  }

  grpc::Status Answer(decltype(ServedCall::answer) answer, const grpc::ByteBuffer& request,
                      grpc::ByteBuffer& response) {
    grpc::Slice whole;
    if (const grpc::Status read = request.DumpToSingleSlice(&whole); !read.ok()) {
      return read;
    }
    const StatusOr<SharedBytes> answered = answer(driver_, BytesOf(whole));
    if (answered.ok()) {
      response = BufferOf(*answered);
    }
    return rpc::ToGrpc(answered.status());
  }

  TaskThread& thread_;
  PluginDriver& driver_;
  int count_ = 0;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePluginService(TaskThread& thread, PluginDriver& driver) {
  return std::make_unique<PluginService>(thread, driver);
}

}  // namespace qrm::sdk
