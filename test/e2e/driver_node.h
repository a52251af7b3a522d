// A simulated runtime and a real qrmd with a compute driver that answers what a test says.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "api/id_set.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_driver.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

using cci::v1alpha1::AdmitRequest;
using cci::v1alpha1::AdmitResponse;

inline constexpr char kScriptedDriver[] = "cci.qrm.io/scripted";

// Eight CPUs on two nodes, with CPU 0 reserved. Every pod may ask for the drivers, and pods in
// namespace "soft" start without a driver that is missing.
inline constexpr char kDriverConfig[] =
    "machine: \"synthetic:package:2 [numa] core:4 pu:1\"\n"
    "topology-policy: single-numa-node\n"
    "plugins: {cpu: {reserved-cpus: \"0\"}}\n"
    "compute-drivers:\n"
    "  scripted: {namespaces: [default]}\n"
    "  round-robin: {namespaces: [default]}\n"
    "  attributes: {namespaces: [default]}\n"
    "  spare: {default-namespaces: [soft], when-missing: fallback}\n";

inline PodSpec DriverPod(const std::string& name, int64_t cpus,
                         const std::string& driver = "scripted") {
  PodSpec pod{.name = name,
              .uid = "uid-" + name,
              .container = {.milli_cpus = cpus * 1000, .memory_bytes = 1 << 20, .cpu_limit = true}};
  if (!driver.empty()) {
    pod.annotations["cci.qrm.io/driver"] = driver;
  }
  return pod;
}

inline void Give(AdmitResponse& response, const std::string& cpus) {
  response.mutable_rset()->set_cpuset(cpus);
  response.mutable_rset()->set_exclusive(true);
}

inline std::string Deterministic(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  return bytes;
}

/// A node whose driver answers by `admit`.
class DriverNode {
 public:
  using Admit = std::function<Status(const AdmitRequest&, AdmitResponse&)>;

  explicit DriverNode(const std::string& config = kDriverConfig) {
    std::ofstream(dir_ / "qrmd.yaml") << config;
    node_ = std::make_unique<Node>(Node::Options{.bin_dir = bin_,
                                                 .work_dir = dir_ / "node",
                                                 .config = dir_ / "qrmd.yaml",
                                                 .nri_socket = runtime.nri_socket(),
                                                 .cri_socket = runtime.cri_socket(),
                                                 .builtin_plugins = "cpu,memory",
                                                 .reconcile_period = "500ms",
                                                 .metrics_address = "127.0.0.1:0"});
    EXPECT_TRUE(IsOk(node_->Start(2)));
  }

  void StartDriver(Admit admit) {
    const std::string socket = dir_ / "node/plugins/scripted.sock";
    std::filesystem::remove(socket);
    DriverScript script;
    script.resizes = resizes;
    script.admit = [this, admit = std::move(admit)](const auto& request, auto& response) {
      on_call("admit");
      return admit(request, response);
    };
    script.add = [this](const auto& request, auto&) {
      on_add(request);
      on_call("add");
      return OkStatus();
    };
    script.remove = [this](const auto&, auto& response) {
      on_call("remove");
      if (!takes_removals) {
        response.set_err("not now");
      }
      return OkStatus();
    };
    driver = std::make_unique<ScriptedDriver>(socket, std::move(script));
    EXPECT_TRUE(Await([&] { return IsLive(kScriptedDriver); })) << Plugins();
  }
  void StopDriver() {
    driver.reset();
    EXPECT_TRUE(Await([&] { return !IsLive(kScriptedDriver); })) << Plugins();
  }
  bool IsLive(const std::string& resource) const {
    const auto plugins = node_->ListPlugins();
    return plugins.ok() &&
           std::any_of(plugins->begin(), plugins->end(), [&](const v1::Plugin& plugin) {
             return plugin.resource_name() == resource && plugin.live();
           });
  }
  std::string Plugins() const { return node_->Qrmctl({"plugins"}).value_or(""); }
  /// All records, and the pools, which show what the cpu plugin withholds.
  std::string State() const {
    const auto pods = node_->ListPods();
    return (pods.ok() ? Deterministic(*pods) : MessageOf(pods.status())) +
           node_->Qrmctl({"pool", "get"}).value_or("no pools");
  }
  std::string Cpus(const std::string& pod) const {
    const auto options = runtime.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? "" : resources->value("cpusetCpus", "");
  }
  std::string Refusal(const PodSpec& pod) { return MessageOf(runtime.RunPod(pod)); }
  Node& node() { return *node_; }
  const std::string& bin() const { return bin_; }
  const TempDir& dir() const { return dir_; }

 private:
  const std::string bin_ = std::filesystem::canonical("/proc/self/exe").parent_path();
  TempDir dir_;

 public:
  SimulatedRuntime runtime{dir_.path()};
  std::atomic<bool> takes_removals = true;
  bool resizes = false;  ///< set before StartDriver
  /// Runs in each call of the driver, by its name; set before StartDriver.
  std::function<void(std::string_view)> on_call = [](std::string_view) {};
  std::function<void(const cci::v1alpha1::AddResourceRequest&)> on_add = [](const auto&) {};
  std::unique_ptr<ScriptedDriver> driver;

 private:
  std::unique_ptr<Node> node_;
};

/// The last CPUs of the hinted node.
inline Status GiveLast(const AdmitRequest& request, AdmitResponse& response) {
  CpuSet available = CpuSet::Parse(request.availablecpus()).value_or(CpuSet());
  if (request.hint().nodes_size() == 1) {
    available &= request.hint().nodes(0) == 0 ? CpuSet::Range(0, 3) : CpuSet::Range(4, 7);
  }
  CpuSet cpus;
  while (cpus.Count() * int64_t{1000} < request.requested_milli_cpus() && !available.Empty()) {
    cpus.Add(available.Last());
    available.Remove(available.Last());
  }
  Give(response, ToString(cpus));
  (*response.mutable_envs())["GIVEN"] = ToString(cpus);
  return OkStatus();
}

}  // namespace qrm::test
