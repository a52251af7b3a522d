// Reads the ports from the program's log.
#include "test/e2e/scheduler_process.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "test/support/ask_port.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

using nlohmann::json;

constexpr char kNodeConfig[] =
    R"({machine: "synthetic:package:2 [numa(memory=64GiB)] core:32 pu:1",
        topology-policy: single-numa-node, plugins: {cpu: {reserved-cpus: "0", static: true}}})";

}  // namespace

SchedulerProcess::SchedulerProcess(std::string directory, const std::string& bin_dir)
    : directory_(std::move(directory)), program_(bin_dir + "/qrm-scheduler") {
  cluster_.Put(
      "/api/v1/nodes",
      {{"metadata", {{"name", "n1"}, {"annotations", {{"qrm.io/node-config", kNodeConfig}}}}},
       {"status", {{"allocatable", {{"cpu", "64"}, {"memory", "128Gi"}}}}}});
}

Status SchedulerProcess::Start() {
  QRM_ASSIGN_OR_RETURN(
      process_,
      Process::Start({program_, "serve", "--kubeconfig=" + cluster_.WriteKubeconfig(directory_),
                      "--address=127.0.0.1:0", "--monitor-address=127.0.0.1:0",
                      "--resources=numa,classes,compute-drivers", "--lease-name=",
                      // A busy machine takes longer to list everything again.
                      "--stale-after=60s"},
                     directory_ + "/log"));
  std::string ready;
  const bool is_ready = Await([&] {
    port_ = NumberInLog(directory_ + "/log", " port=");
    monitor_port_ = NumberInLog(directory_ + "/log", " monitor_port=");
    ready = monitor_port_ == 0 ? "" : AskPort(monitor_port_, "GET /readyz");
    return ready == "ok\n" || !process_->Running();
  });
  return is_ready && process_->Running()
             ? OkStatus()
             : Errorf(StatusCode::kUnavailable, "qrm-scheduler is not ready: {}; {}", ready,
                      process_->LastOutput());
}

StatusOr<std::chrono::nanoseconds> SchedulerProcess::Filter(const std::string& pod,
                                                            const std::string& node) const {
  const json question = {
      {"Pod", cluster_.Find("/api/v1/pods", pod)}, {"Nodes", nullptr}, {"NodeNames", {node}}};
  const std::string body = question.dump();
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = AskPort(port_, "POST /filter", body);
  const auto took = std::chrono::steady_clock::now() - begin;
  const json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || answer.value("NodeNames", json()) != json::array({node})) {
    return Errorf(StatusCode::kUnavailable, "the answer about {} is: {}", pod, text);
  }
  return took;
}

Status SchedulerProcess::Bind(const std::string& pod) const {
  const json meta = cluster_.Find("/api/v1/pods", pod)["metadata"];
  const json question = {{"PodName", meta["name"]},
                         {"PodNamespace", meta["namespace"]},
                         {"PodUID", meta["uid"]},
                         {"Node", "n1"}};
  const std::string text = AskPort(port_, "POST /bind", question.dump());
  const json answer = json::parse(text, nullptr, false);
  return answer.is_object() && answer.value("Error", "?").empty()
             ? OkStatus()
             : Errorf(StatusCode::kUnavailable, "the answer about {} is: {}", pod, text);
}

}  // namespace qrm::test
