// Implements the floor with generated gRPC stubs and services, and plain files.
#include "bench/floor.h"

#include <chrono>
#include <latch>
#include <semaphore>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/wire.h"
#include "test/support/child_process.h"
#include "test/support/synced_log.h"

namespace qrm::bench {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

constexpr std::chrono::seconds kTimeout{10};

const std::vector<TopologyHint> kHints = {{.nodes = {0}, .preferred = true},
                                          {.nodes = {1}, .preferred = true}};

/// Syncs on a separate thread: gRPC has too few for three plugins to wait in.
class FloorPlugin final : public pb::ResourcePlugin::CallbackService {
 public:
  FloorPlugin(const std::string& log_path, std::size_t record_bytes)
      : log_(log_path, record_bytes, test::SyncedLog::Length::kStays),
        thread_([this] { Work(); }) {}
  ~FloorPlugin() override {
    work_.release();
    thread_.join();
  }
  FloorPlugin(const FloorPlugin&) = delete;
  FloorPlugin& operator=(const FloorPlugin&) = delete;

  grpc::ServerUnaryReactor* GetTopologyHints(grpc::CallbackServerContext* context,
                                             const pb::ResourceRequest* request,
                                             pb::ResourceHintsResponse* response) override {
    if (hints_.resource_name().empty()) {
      hints_ = wire::HintsResponse(*wire::FromWire(*request), kHints);
    }
    *response = hints_;
    return Answer(context);
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const pb::ResourceRequest* request,
                                     pb::ResourceAllocationResponse* response) override {
    if (allocation_.resource_name().empty()) {
      const ResourceAllocation given = {.oci_property = std::string(kCpusetCpus),
                                        .value = "0-3",
                                        .is_scalar_resource = true,
                                        .quantity = 4,
                                        .hints = kHints,
                                        .amount_by_node = {{0, 4}}};
      allocation_ = wire::AllocationResponse(*wire::FromWire(*request), {{"cpu", given}});
    }
    *response = allocation_;
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    waiting_ = reactor;
    work_.release();
    return reactor;
  }

 private:
  void Work() {
    for (work_.acquire(); waiting_ != nullptr; work_.acquire()) {
      log_.Append();
      std::exchange(waiting_, nullptr)->Finish(grpc::Status::OK);
    }
  }

  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  // The caller sends one request at a time.
  test::SyncedLog log_;
  pb::ResourceHintsResponse hints_;
  pb::ResourceAllocationResponse allocation_;
  grpc::ServerUnaryReactor* waiting_ = nullptr;
  std::binary_semaphore work_{0};
  std::thread thread_;
};

std::unique_ptr<grpc::Server> Serve(grpc::Service& service, const std::string& socket) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

std::shared_ptr<grpc::Channel> Connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel =
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
  QRM_CHECK(channel->WaitForConnected(std::chrono::system_clock::now() + kTimeout));
  return channel;
}

template <typename Response>
struct Call {
  grpc::ClientContext context;
  Response response;
};

}  // namespace

void ServeFloorPlugin(const std::string& socket, const std::string& log_path,
                      std::size_t record_bytes) {
  FloorPlugin plugin(log_path, record_bytes);
  const auto server = Serve(plugin, socket);
  while (true) {
    ::pause();
  }
}

struct Floor::Impl {
  explicit Impl(const Options& options)
      : request(wire::ToWire(options.request)),
        log(options.directory + "/floor.log", options.record_bytes[0],
            test::SyncedLog::Length::kStays) {
    for (std::size_t i = 1; i < options.record_bytes.size(); ++i) {
      const std::string path = fmt::format("{}/floor-{}", options.directory, i);
      const std::size_t bytes = options.record_bytes[i];
      const std::vector<std::string> command = {options.program, kFloorPluginFlag, path + ".sock",
                                                path + ".log", std::to_string(bytes)};
      processes.push_back(std::make_unique<test::ChildProcess>(command, path + ".out"));
      stubs.push_back(pb::ResourcePlugin::NewStub(Connect(path + ".sock")));
    }
  }

  template <typename Response, typename Begin>
  void AskAll(Begin begin) {
    std::vector<Call<Response>> calls(stubs.size());
    std::latch answered(static_cast<std::ptrdiff_t>(stubs.size()));
    for (std::size_t i = 0; i < stubs.size(); ++i) {
      calls[i].context.set_deadline(std::chrono::system_clock::now() + kTimeout);
      begin(*stubs[i]->async(), calls[i], [&answered](const grpc::Status& status) {
        QRM_CHECK(status.ok());
        answered.count_down();
      });
    }
    answered.wait();
  }

  const pb::ResourceRequest request;
  test::SyncedLog log;
  std::vector<std::unique_ptr<test::ChildProcess>> processes;
  std::vector<std::unique_ptr<pb::ResourcePlugin::Stub>> stubs;
};

Floor::Floor(const Options& options) : impl_(std::make_unique<Impl>(options)) {}

Floor::~Floor() = default;

void Floor::CollectHints() {
  impl_->AskAll<pb::ResourceHintsResponse>([this](auto& async, auto& call, auto done) {
    async.GetTopologyHints(&call.context, &impl_->request, &call.response, done);
  });
}

void Floor::Allocate() {
  impl_->AskAll<pb::ResourceAllocationResponse>([this](auto& async, auto& call, auto done) {
    async.Allocate(&call.context, &impl_->request, &call.response, done);
  });
}

void Floor::Commit() {
  impl_->log.Append();
}

}  // namespace qrm::bench
