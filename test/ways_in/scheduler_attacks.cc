// Writes objects as tenants and nodes may, and calls the ports as browsers and scanners do.
#include "test/ways_in/scheduler_attacks.h"

#include <fstream>
#include <string>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "test/e2e/process.h"
#include "test/support/ask_port.h"
#include "test/ways_in/port_attacks.h"
#include "test/ways_in/repeated.h"

namespace qrm::test {
namespace {

using nlohmann::json;

constexpr char kPods[] = "/api/v1/pods";
constexpr char kNodes[] = "/api/v1/nodes";
/// More than a port takes of one address.
constexpr int kPortConnections = 300;
constexpr int kHostilePods = 300;
constexpr int kHostileNodes = 60;

void PutNode(const SchedulerUnderAttack& scheduler, int number, json annotations) {
  scheduler.cluster.Put(
      kNodes,
      {{"metadata",
        {{"name", "hostile" + std::to_string(number)}, {"annotations", std::move(annotations)}}},
       {"status", {{"allocatable", {{"cpu", "8"}}}}}});
}

void PutPod(const SchedulerUnderAttack& scheduler, int number, json annotations) {
  const std::string name = "hostile" + std::to_string(number);
  scheduler.cluster.Put(
      kPods, {{"metadata",
               {{"namespace", "d"},
                {"name", name},
                {"uid", "uid-" + name},
                {"annotations", std::move(annotations)}}},
              {"spec", {{"nodeName", "n1"}, {"containers", json::array({{{"name", "c"}}})}}}});
}

Status AttackAddress(const SchedulerUnderAttack& scheduler) {
  const std::string deep = Repeated("[", 200'000);
  const std::string many = "[" + Repeated("{},", std::size_t{7} << 20) + "{}]";
  for (const std::string& body : {deep, R"({"Pod": )" + deep, many}) {
    for (const char* call : {"POST /filter", "POST /bind", "POST /preempt"}) {
      AskPort(scheduler.port, call, body);
    }
  }
  for (int i = 0; i < 2; ++i) {
    ::close(SendToPort(scheduler.port, "GET /dump?compare HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  AttackHttp(scheduler.port, kPortConnections);
  return OkStatus();
}

Status AttackPodObjects(const SchedulerUnderAttack& scheduler) {
  for (int i = 0; i < kHostilePods; ++i) {
    json annotations = {{"large", std::string(kMostAnnotationBytes, 'x')}};
    if (i % 3 == 0) {
      annotations = {
          {"katalyst.kubewharf.io/cpu_enhancement", Repeated("[", kMostAnnotationBytes)}};
    } else if (i % 3 == 1) {
      for (int key = 0; key < 8000; ++key) {
        annotations["key" + std::to_string(key)] = "0123456789012345678" + std::to_string(i);
      }
    }
    PutPod(scheduler, i, std::move(annotations));
  }
  scheduler.cluster.ForgetHistory();
  scheduler.cluster.CutWatches();  // so that all are listed again
  return OkStatus();
}

Status AttackNodeConfig(const SchedulerUnderAttack& scheduler) {
  const std::string machine = "machine: \"synthetic:package:1 [numa] core:4 pu:1\"\n";
  for (int i = 0; i < kHostileNodes; ++i) {
    std::string config;
    switch (i % 6) {
      case 0:
        config = "a: &a [*a]\n";
        break;
      case 1:
        config = Repeated("[", kMostAnnotationBytes);
        break;
      case 2:
        config = fmt::format("machine: \"synthetic:package:{} core:4 pu:2\"\n", 100'000 + i);
        break;
      case 3:
        config =
            fmt::format("machine: \"described:cpus=0-65535 cores=0-65535 nodes={}*65536\"\n", i);
        break;
      case 4:
        config = machine + "# " + std::to_string(i) + "\nplugins: {cpu: {pools: {" +
                 Repeated(fmt::format("p{0}: {{cpus: \"0\"}}, ", i), 150'000) + "}}}\n";
        break;
      default:
        config = Repeated(fmt::format("k{}: [1, 2, 3, 4]\n", i), kMostAnnotationBytes);
    }
    PutNode(scheduler, i, {{"qrm.io/node-config", config}});
  }
  return OkStatus();
}

Status AttackNodeDrivers(const SchedulerUnderAttack& scheduler) {
  for (int i = 0; i < kHostileNodes; ++i) {
    json drivers = json::object();
    for (int number = 0; number < 3'900; ++number) {
      drivers["driver" + std::to_string(number)] = "not running since " + std::to_string(i);
    }
    PutNode(scheduler, i,
            {{"qrm.io/compute-drivers",
              i % 2 == 0 ? drivers.dump() : Repeated("{\"a\":", kMostAnnotationBytes)}});
  }
  return OkStatus();
}

Status AttackNodeClasses(const SchedulerUnderAttack& scheduler) {
  for (int i = 0; i < kHostileNodes; ++i) {
    std::string classes;
    switch (i % 3) {
      case 0:
        classes = Repeated("[", kMostAnnotationBytes);
        break;
      case 1:
        classes = "[" + Repeated("{},", kMostAnnotationBytes) + std::to_string(i) + "]";
        break;
      default: {
        json types = json::array();
        for (int number = 0; number < 2000; ++number) {
          types.push_back({{"name", "type" + std::to_string(number)}, {"classes", {i}}});
        }
        classes = types.dump();
      }
    }
    PutNode(scheduler, i, {{"qrm.io/class-resources", classes}});
  }
  return OkStatus();
}

Status AttackPlacements(const SchedulerUnderAttack& scheduler) {
  for (int i = 0; i < kHostilePods; ++i) {
    std::string placement;
    switch (i % 3) {
      case 0:
        placement = R"({"containers": {"c": {"cpu": "0-65535", "n": )" + std::to_string(i) + "}}}";
        break;
      case 1:
        placement = R"({"containers": {)" +
                    Repeated(R"("c": {"cpu": "1"}, )", kMostAnnotationBytes - 1000) +
                    R"("d": {}}})";
        break;
      default:
        placement = R"({"containers": )" + Repeated("[", kMostAnnotationBytes);
    }
    PutPod(scheduler, i, {{"qrm.io/placement", placement}});
  }
  return OkStatus();
}

Status AttackConfiguration(const SchedulerUnderAttack& scheduler) {
  const std::string file = scheduler.dir + "/hostile.yaml";
  for (const std::string& text : {std::string("a: &a [*a]\n"), Repeated("[", std::size_t{2} << 20),
                                  Repeated("a: [1, 2]\n", std::size_t{1} << 20)}) {
    std::ofstream(file) << text;
    const auto run = RunCommand({scheduler.program, "serve", "--config=" + file, "--check-config"});
    if (MessageOf(run.status()).find("cannot read " + file) == std::string::npos) {
      return Errorf(StatusCode::kInternal, "the answer about a bad configuration is: {}",
                    MessageOf(run.status()));
    }
  }
  return OkStatus();
}

}  // namespace

const std::map<std::string, SchedulerAttack>& SchedulerAttacks() {
  static const auto* const attacks = new std::map<std::string, SchedulerAttack>{
      {"address", AttackAddress},
      {"monitor-address",
       [](const SchedulerUnderAttack& scheduler) {
         AttackHttp(scheduler.monitor_port, kPortConnections);
         return OkStatus();
       }},
      {"pod-objects", AttackPodObjects},
      {"node-config", AttackNodeConfig},
      {"node-classes", AttackNodeClasses},
      {"node-drivers", AttackNodeDrivers},
      {"placement", AttackPlacements},
      {"serve-configuration", AttackConfiguration},
  };
  return *attacks;
}

}  // namespace qrm::test
