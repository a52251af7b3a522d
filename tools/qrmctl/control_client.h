// The control API as qrmctl calls it, with errors that say what to do.
#pragma once

#include <string>
#include <utility>

#include "api/base/status.h"
#include "tools/qrmctl/command_line.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace qrm::manager::cli {

/// One connection to qrmd. Every call fails with kUnavailable and a sentence on how to reach it
/// when it does not run, with kPermissionDenied when it does not serve this user.
class ControlClient {
 public:
  /// `option` is the one that names the socket, for errors.
  explicit ControlClient(std::string socket_path, std::string option = "--control-socket")
      : path_(std::move(socket_path)), option_(std::move(option)) {}
  /// At the control socket that `line` was given.
  explicit ControlClient(const CommandLine& line) : ControlClient(line.control_socket()) {}

  /// qrmd's answer to `request`, whose type selects the call: `Response` is the answer's type of
  /// the one call that takes such a request.
  template <typename Response>
  StatusOr<Response> Ask(const google::protobuf::Message& request) const {
    Response response;
    QRM_RETURN_IF_ERROR(Call(request, response));
    return response;
  }

 private:
  Status Call(const google::protobuf::Message& request, google::protobuf::Message& response) const;
  Status Send(const google::protobuf::Message& request, google::protobuf::Message& response) const;

  const std::string path_;
  const std::string option_;
};

}  // namespace qrm::manager::cli
