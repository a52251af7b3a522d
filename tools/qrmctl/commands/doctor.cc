// qrmctl doctor
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "api/base/unix_socket.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/grpc_status.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/node_checks.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

using State = NodeCheck::State;

constexpr std::chrono::seconds kRuntimeTimeout{5};

/// Asks the runtime that listens on `socket`.
NodeCheck AskRuntime(const std::string& socket) {
  const auto stub = ::runtime::v1::RuntimeService::NewStub(rpc::UnixChannel(socket));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kRuntimeTimeout);
  ::runtime::v1::VersionResponse answer;
  const Status status = rpc::FromGrpc(stub->Version(&context, {}, &answer));
  if (!status.ok()) {
    return {"runtime", State::kFailing, "does not answer over CRI: " + MessageOf(status),
            "restart the runtime; if it is another program, set cri-socket to the runtime's"};
  }
  return CheckRuntimeVersion(answer.runtime_name(), answer.runtime_version());
}

NodeCheck CheckQrmd(const std::string& socket) {
  if (ProbeSocket(socket) != 0) {
    return {"qrmd", State::kOk, "not running", ""};
  }
  const auto status = ControlClient(socket).Ask<v1::GetStatusResponse>(v1::GetStatusRequest());
  if (!status.ok()) {
    return {"qrmd", State::kFailing, "does not answer",
            "read qrmd's log: " + MessageOf(status.status())};
  }
  if (!status->ready()) {
    return {"qrmd", State::kFailing, "not ready",
            "type qrmctl status: " + status->not_ready_reasons(0)};
  }
  if (!status->degraded_reasons().empty()) {
    return {"qrmd", State::kDegraded, "ready, degraded",
            "type qrmctl status: " + status->degraded_reasons(0)};
  }
  return {"qrmd", State::kOk, "ready, version " + status->version(), ""};
}

std::vector<NodeCheck> Examine(const NodePaths& node, const std::string& control_socket) {
  std::vector<NodeCheck> checks = CheckNode(node);
  for (NodeCheck& check : checks) {
    if (check.name == "runtime" && check.state == State::kOk) {
      check = AskRuntime(node.root + node.cri_socket);
    }
  }
  checks.push_back(CheckQrmd(control_socket));
  return checks;
}

Document ToDocument(const std::vector<NodeCheck>& checks) {
  Document list = Document::array();
  for (const NodeCheck& check : checks) {
    list.push_back({{"name", check.name},
                    {"state", ToString(check.state)},
                    {"found", check.found},
                    {"cure", check.cure}});
  }
  return {{"checks", std::move(list)}};
}

}  // namespace

int RunDoctor(const Args& args, std::ostream& out, std::ostream& err) {
  std::string root;
  std::string config = kDefaultConfig;
  CommandLine line(
      "doctor",
      "Checks what a node needs for qrmd, before and after the installation, and names each\n"
      "cure. Changes nothing. Exit code 1: something is failing.",
      "qrmctl doctor");
  line.Output()
      .ControlSocket()
      .Option("--config", config, "qrmd's configuration, for the paths in it", "FILE")
      .Option("--fsroot", root, "the node's root directory, if it is mounted elsewhere", "DIR");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto node = ReadNodePaths(root, config);
  if (!node.ok()) {
    return line.Fail(node.status(), err);
  }
  const std::vector<NodeCheck> checks = Examine(*node, line.control_socket());
  if (line.format().IsText()) {
    Table table({"CHECK", "STATE", "FOUND", "CURE"});
    for (const NodeCheck& check : checks) {
      table.Add({check.name, ToString(check.state), check.found, check.cure});
    }
    table.Print(out);
  } else {
    Print(ToDocument(checks), line.format(), out);
  }
  const bool fails = std::any_of(checks.begin(), checks.end(), [](const NodeCheck& check) {
    return check.state == State::kFailing;
  });
  return fails ? kFailed : kDone;
}

}  // namespace qrm::manager::cli
