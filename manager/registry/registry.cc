// Serves Register, answers after the plugin has been probed, and starts the parts in order.
#include "manager/registry/registry.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/unix_socket.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/grpc_status.h"
#include "api/wire.h"
#include "manager/registry/registration_check.h"
#include "manager/registry/socket_watcher.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

StatusOr<Registration> ReadRequest(const pb::RegisterRequest& request,
                                   const std::string& directory) {
  QRM_RETURN_IF_ERROR(CheckVersions({request.version()}));
  QRM_RETURN_IF_ERROR(CheckPluginName(request.resource_name()));
  Registration registration{.resource = request.resource_name(),
                            .registered_by = RegisteredBy::kRegister};
  QRM_ASSIGN_OR_RETURN(registration.socket, SocketNamed(request.endpoint(), directory));
  if (request.has_options()) {
    registration.options = wire::FromWire(request.options());
  }
  return registration;
}

class Service final : public pb::Registration::CallbackService {
 public:
  Service(std::string directory, EndpointSet& endpoints)
      : directory_(std::move(directory)), endpoints_(endpoints) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const pb::RegisterRequest* request,
                                     pb::Empty* /*response*/) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    StatusOr<qrm::manager::Registration> registration = ReadRequest(*request, directory_);
    if (!registration.ok()) {
      Answer(*request, registration.status(), reactor);
      return reactor;
    }
    endpoints_.Register(*std::move(registration),
                        [reactor, request = *request](const Status& registered) {
                          Answer(request, registered, reactor);
                        });
    return reactor;
  }

 private:
  static void Answer(const pb::RegisterRequest& request, const Status& result,
                     grpc::ServerUnaryReactor* reactor) {
    if (!result.ok()) {
      log::Warning("registration rejected", {{"resource", request.resource_name()},
                                             {"endpoint", request.endpoint()},
                                             {"error", MessageOf(result)}});
    }
    reactor->Finish(rpc::ToGrpc(result));
  }

  const std::string directory_;
  EndpointSet& endpoints_;
};

/// Removes the sockets in `directory`, except kubelet.sock, which the server itself replaces.
Status RemoveSockets(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;  // the file may vanish meanwhile
    if (entry->is_socket(ignored) && entry->path().filename() != kRegistrationSocket) {
      std::filesystem::remove(entry->path(), error);
    }
  }
  if (error) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot remove old sockets from {}: {}; make the directory readable and writable",
                  directory, error.message());
  }
  return OkStatus();
}

}  // namespace

struct Registry::Impl {
  Impl(boost::asio::io_context& io, RegistryOptions options)
      : directory(std::move(options.registration_dir)),
        watched(options.watcher.directory),
        endpoints(std::move(options.endpoints)),
        service(directory, endpoints),
        watcher(io, endpoints, std::move(options.watcher)) {}

  const std::string directory;
  const std::string watched;
  // Destroyed in reverse: no registration arrives at an endpoint set that is gone.
  EndpointSet endpoints;
  Service service;
  UnixServer server{UnixServerOptions{}};
  SocketWatcher watcher;
};

Registry::Registry(boost::asio::io_context& io, RegistryOptions options)
    : impl_(std::make_unique<Impl>(io, std::move(options))) {}

Registry::~Registry() = default;

Status Registry::AddBuiltIn(const std::string& resource, LocalPlugin& plugin) {
  return impl_->endpoints.AddBuiltIn(resource, plugin);
}

Status Registry::Start() {
  for (const std::string& directory : {impl_->directory, impl_->watched}) {
    if (std::filesystem::exists(directory)) {
      QRM_RETURN_IF_ERROR(CheckPluginDirectory(directory));
    }
  }
  const std::string socket = impl_->directory + "/" + kRegistrationSocket;
  if (std::filesystem::exists(impl_->directory) && ProbeSocket(socket) != 0) {
    QRM_RETURN_IF_ERROR(RemoveSockets(impl_->directory));
  }
  QRM_RETURN_IF_ERROR(impl_->server.Start(socket, {&impl_->service}));
  return impl_->watcher.Start();
}

Plugins& Registry::plugins() {
  return impl_->endpoints;
}

}  // namespace qrm::manager
