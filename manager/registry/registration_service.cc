// Serves Register, and answers after the plugin has been probed.
#include "manager/registry/registration_service.h"

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

struct RegistrationService::Impl {
  Impl(std::string dir, EndpointSet& endpoints)
      : directory(std::move(dir)), service(directory, endpoints) {}

  const std::string directory;
  Service service;
  UnixServer server{UnixServerOptions{}};
};

RegistrationService::RegistrationService(std::string directory, EndpointSet& endpoints)
    : impl_(std::make_unique<Impl>(std::move(directory), endpoints)) {}

RegistrationService::~RegistrationService() = default;

Status RegistrationService::Start() {
  const std::string socket = impl_->directory + "/" + kRegistrationSocket;
  if (std::filesystem::exists(impl_->directory) && ProbeSocket(socket) != 0) {
    QRM_RETURN_IF_ERROR(RemoveSockets(impl_->directory));
  }
  return impl_->server.Start(socket, {&impl_->service});
}

void RegistrationService::Stop() {
  impl_->server.Stop();
}

}  // namespace qrm::manager
