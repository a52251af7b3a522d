// An attack on each way; what its peers are made of is in test/support.
#include "test/ways_in/daemon_attacks.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/scripted_plugin.h"
#include "test/support/tls_kubelet.h"
#include "test/ways_in/port_attacks.h"
#include "test/ways_in/repeated.h"

namespace qrm::test {
namespace {

constexpr std::size_t kAnswerBytes = std::size_t{15} << 20;
constexpr std::size_t kPluginAnswerBytes = std::size_t{7} << 19;
constexpr int kHttpConnections = 64;

PodSpec Pod(const std::string& name) {
  return {.name = name, .uid = "uid-" + name, .container = {.milli_cpus = 100}};
}

DaemonAttack OfSocket(const std::string& socket, const std::string& method, std::size_t bytes) {
  return {.run = [=](AttackedDaemon& daemon) {
    AttackGrpc(
        {.socket = daemon.dir + "/node/" + socket, .method = method, .request_bytes = bytes});
  }};
}

DaemonAttack OfPort(const std::string& key, int (Node::*port)() const) {
  return {
      .prepare = [=](DaemonSetup& setup) { setup.flags.push_back("--" + key + "=127.0.0.1:0"); },
      .run =
          [=](AttackedDaemon& daemon) { AttackHttp((daemon.node.*port)(), 4 * kHttpConnections); }};
}

void RunThem(AttackedDaemon& daemon, int count,
             const std::function<void(int, PodSpec&)>& annotate) {
  for (int i = 0; i < count; ++i) {
    PodSpec pod = Pod("hostile" + std::to_string(i));
    annotate(i, pod);
    if (daemon.runtime.RunPod(pod).ok()) {
      static_cast<void>(daemon.runtime.RemovePod(pod.name));
    }
  }
}

void AnnotateMuch(int number, PodSpec& pod) {
  const std::string much(kMostAnnotationBytes, number % 2 == 0 ? '[' : 'x');
  switch (number % 4) {
    case 0:
      pod.annotations = {{"katalyst.kubewharf.io/cpu_enhancement", much}};
      break;
    case 1:
      pod.annotations = {{"katalyst.kubewharf.io/qos_level", much}};
      break;
    case 2:
      for (int i = 0; i < 8000; ++i) {
        pod.annotations["key" + std::to_string(i)] = "0123456789012345678" + std::to_string(number);
      }
      break;
    default:
      for (int i = 0; i < 200; ++i) {
        pod.labels[fmt::format("label{}-{}", number, i)] = std::string(60, 'x');
      }
  }
}

/// The allocations of as many pods as an answer has room for.
Status TellOfManyPods(const resourceplugin::v1alpha1::GetResourcesAllocationRequest& /*request*/,
                      resourceplugin::v1alpha1::GetResourcesAllocationResponse& response) {
  for (std::size_t bytes = 0; bytes < kPluginAnswerBytes; bytes += 200) {
    const std::string uid = fmt::format("uid-of-a-pod-that-nobody-knows-{:09}", bytes);
    auto& info = (*(*(*response.mutable_pod_resources())[uid].mutable_container_resources())["main"]
                       .mutable_resource_allocation())["example.com/hostile"];
    info.set_allocated_quantity(1);
    info.set_allocation_result(std::string(90, 'x'));
  }
  return OkStatus();
}

Status TellOfManyPools(const v1::GetPoolsRequest& /*request*/, v1::GetPoolsResponse& response) {
  for (std::size_t bytes = 0; bytes < kPluginAnswerBytes; bytes += 900) {
    response.add_pools()->set_name(fmt::format("a-pool-that-nobody-knows-{:09}", bytes));
  }
  return OkStatus();
}

/// `answer` once `hostile` is set; an empty answer before.
template <typename Request, typename Response>
auto Once(const std::shared_ptr<std::atomic<bool>>& hostile,
          Status (*answer)(const Request&, Response&)) {
  return [hostile, answer](const Request& request, Response& response) {
    return *hostile ? answer(request, response) : OkStatus();
  };
}

DaemonAttack OfPluginAnswers() {
  const auto hostile = std::make_shared<std::atomic<bool>>(false);
  return {.prepare =
              [hostile](DaemonSetup& setup) {
                *hostile = false;
                PluginScript script;
                script.identity = IdentityFor("example.com/hostile");
                script.reconcile = Once(hostile, TellOfManyPods);
                script.get_pools = Once(hostile, TellOfManyPools);
                std::filesystem::create_directories(setup.dir + "/node/plugins");
                setup.peer = std::make_shared<ScriptedPlugin>(
                    setup.dir + "/node/plugins/hostile.sock", std::move(script));
              },
          .run =
              [hostile](AttackedDaemon& daemon) {
                *hostile = true;
                for (int i = 0; i < 3; ++i) {
                  static_cast<void>(daemon.node.Reconcile());
                  static_cast<void>(daemon.node.Qrmctl({"pool", "get", "example.com/hostile"}));
                }
              }};
}

DaemonAttack OfAdvisor() {
  return {.prepare =
              [](DaemonSetup& setup) {
                setup.config += fmt::format(
                    "plugins: {{cpu: {{pools: {{p: {{size: {{max: 2, per: advice}}}}}}, "
                    "advisor: {{socket: {}/advisor.sock}}}}}}\n",
                    setup.dir);
              },
          .run = [](AttackedDaemon& daemon) { AttackAdvisor(daemon.dir + "/advisor.sock"); }};
}

/// A message of the runtime as large as pods can make it: each has all the annotations that fit.
DaemonAttack OfRuntime() {
  constexpr int kPods = 80;
  return {.run = [](AttackedDaemon& daemon) {
    for (int i = 0; i < kPods; ++i) {
      PodSpec pod = Pod("unseen" + std::to_string(i));
      AnnotateMuch(2, pod);
      daemon.runtime.RunPodUnseen(pod);
    }
    for (int i = 0; i < 3; ++i) {
      const std::lock_guard cut(daemon.connected);
      const int seen = daemon.runtime.synchronizations();
      daemon.runtime.Disconnect();
      static_cast<void>(daemon.runtime.WaitForSynchronizations(seen + 1));
    }
    for (int i = 0; i < kPods; ++i) {
      static_cast<void>(daemon.runtime.RemovePod("unseen" + std::to_string(i)));
    }
  }};
}

DaemonAttack OfCri() {
  constexpr int kPods = 250;
  return {.run = [](AttackedDaemon& daemon) {
    for (int i = 0; i < kPods; ++i) {
      PodSpec pod = Pod("listed" + std::to_string(i));
      for (int label = 0; label < 100; ++label) {
        pod.labels["label" + std::to_string(label)] = std::string(63, 'x');
      }
      daemon.runtime.RunPodUnseen(pod);
    }
    const int lists = daemon.runtime.lists();
    Await([&] { return daemon.runtime.lists() >= lists + 3; });
    for (int i = 0; i < kPods; ++i) {
      static_cast<void>(daemon.runtime.RemovePod("listed" + std::to_string(i)));
    }
  }};
}

DaemonAttack OfPodsApi() {
  return {.prepare =
              [](DaemonSetup& setup) {
                auto kubelet = std::make_shared<ScriptedKubelet>(setup.dir + "/pods-api.sock");
                setup.flags.push_back("--kubelet-pods-socket=" + setup.dir + "/pods-api.sock");
                setup.flags.emplace_back("--pod-spec-wait=0s");
                setup.peer = kubelet;
                std::filesystem::create_directories(setup.dir + "/kubelet");
              },
          .run =
              [](AttackedDaemon& daemon) {
                // A second kubelet takes the place of the first one.
                ScriptedKubelet hostile(daemon.dir + "/hostile.sock");
                for (int i = 0; i < 10'000; ++i) {
                  const std::string name = "pod" + std::to_string(i);
                  hostile.Put("uid-" + name, PodMessage("uid-" + name, name, "1"));
                }
                std::filesystem::rename(daemon.dir + "/hostile.sock",
                                        daemon.dir + "/pods-api.sock");
                const std::string large(std::size_t{3} << 19, 'x');
                Await([&] { return hostile.watches() > 0; }, std::chrono::seconds(5));
                for (int i = 0; i < 100; ++i) {
                  hostile.Send(1, PodMessage("uid-large", "large", large));
                  hostile.Send(1, std::string(std::size_t{3} << 19, '\xff'));
                }
              }};
}

DaemonAttack OfKubeletDevices() {
  return {.prepare =
              [](DaemonSetup& setup) {
                const std::string socket = setup.dir + "/devices.sock";
                auto kubelet = std::make_shared<FakeKubelet>(socket);
                setup.flags.push_back("--kubelet-pod-resources-socket=" + socket);
                setup.peer = kubelet;
              },
          .run =
              [](AttackedDaemon& daemon) {
                auto& kubelet = *static_cast<FakeKubelet*>(daemon.peer);
                for (int i = 0; i < 200; ++i) {
                  const FakeKubelet::Container container{"default", "p" + std::to_string(i % 20),
                                                         "main"};
                  kubelet.AddDevice(container, {.resource = "example.com/device",
                                                .id = std::string(kAnswerBytes / 300, 'x'),
                                                .nodes = {0}});
                }
                for (int i = 0; i < 5; ++i) {
                  static_cast<void>(daemon.node.ListPodResources());
                }
              }};
}

/// As many specifications as are read, all of the device of every container, as large as may be.
DaemonAttack OfCdi() {
  return {.prepare =
              [](DaemonSetup& setup) {
                const std::string dir = setup.dir + "/cdi";
                std::filesystem::create_directories(dir);
                const std::string start = "kind: a.io/gpu\ndevices: [{name: c, containerEdits: ";
                for (int i = 0; i < 1000; ++i) {
                  std::ofstream(fmt::format("{}/{}.yaml", dir, i))
                      << start << Repeated("[", (std::size_t{256} << 10) - start.size());
                }
                setup.config += "cdi-directories: [" + dir + "]\n";
              },
          .run =
              [](AttackedDaemon& daemon) {
                RunThem(daemon, 20, [](int, PodSpec& pod) {
                  pod.container.cdi_devices.assign(20, "a.io/gpu=c");
                });
              }};
}

DaemonAttack OfKubeletUrl() {
  return {.prepare =
              [](DaemonSetup& setup) {
                auto kubelet = std::make_shared<TlsKubelet>();
                kubelet->SetToken("token");
                std::ofstream(setup.dir + "/token") << "token";
                std::ofstream(setup.dir + "/kubelet.crt") << kubelet->certificate();
                kubelet->SetAnswer(200, R"({"items": []})");
                setup.flags.push_back(
                    fmt::format("--kubelet-url=https://127.0.0.1:{}/pods", kubelet->port()));
                setup.flags.emplace_back("--kubelet-poll-interval=100ms");
                setup.flags.push_back("--kubelet-token-file=" + setup.dir + "/token");
                setup.flags.push_back("--kubelet-certificate-file=" + setup.dir + "/kubelet.crt");
                setup.flags.emplace_back("--pod-spec-wait=0s");
                setup.peer = kubelet;
              },
          .run =
              [](AttackedDaemon& daemon) {
                auto& kubelet = *static_cast<TlsKubelet*>(daemon.peer);
                for (const std::string& body :
                     {R"({"items": [)" + Repeated("{},", std::size_t{31} << 20) + "{}]}",
                      R"({"items": [)" + Repeated("[", 200'000)}) {
                  kubelet.SetAnswer(200, body);
                  const int before = kubelet.answered();
                  // The answers come one after the other: the second has been read by the third.
                  Await([&] {
                    RunThem(daemon, 1, [](int, PodSpec&) {});
                    return kubelet.answered() >= before + 3;
                  });
                }
              }};
}

/// The node's own object is as large as etcd takes one.
DaemonAttack OfApiServer() {
  return {.prepare =
              [](DaemonSetup& setup) {
                auto server = std::make_shared<FakeApiServer>();
                server->Put("/api/v1/nodes", {{"metadata", {{"name", "n1"}, {"uid", "u1"}}}});
                setup.config +=
                    "publish: [topology, events]\npublish-interval: 100ms\n"
                    "node-name: n1\nkubeconfig: " +
                    server->WriteKubeconfig(setup.dir) + "\n";
                setup.peer = server;
              },
          .run =
              [](AttackedDaemon& daemon) {
                static_cast<FakeApiServer*>(daemon.peer)
                    ->Put("/api/v1/nodes",
                          {{"metadata",
                            {{"name", "n1"},
                             {"uid", "u1"},
                             {"annotations", {{"large", std::string(1'400'000, 'x')}}}}}});
                RunThem(daemon, 100, [](int, PodSpec&) {});
              }};
}

DaemonAttack OfConfiguration() {
  return {.run = [](AttackedDaemon& daemon) {
    const std::string file = daemon.dir + "/qrmd.yaml";
    std::ifstream good(file);
    const std::string before{std::istreambuf_iterator<char>(good), {}};
    std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 30; ++i) {
      laughs +=
          fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
    }
    for (const std::string& text :
         {std::string("a: &a [*a]\n"), laughs, Repeated("[", std::size_t{2} << 20),
          std::string("machine: \"synthetic:package:100000 core:4 pu:2\"\n"),
          Repeated("a: [1, 2]\n", 1 << 20)}) {
      std::ofstream(file) << text;
      ::kill(daemon.node.daemon_pid(), SIGHUP);
      static_cast<void>(daemon.node.Qrmctl({"policy", "check", file}));
    }
    std::ofstream(file) << before;
  }};
}

/// A directory has the path of the history of decisions.
DaemonAttack OfStateDirectory() {
  return {.prepare =
              [](DaemonSetup& setup) {
                const std::string state = setup.dir + "/node/state/qrmd";
                std::filesystem::create_directories(state + "/decisions.jsonl/full");
              },
          .run = [](AttackedDaemon& daemon) { RunThem(daemon, 200, AnnotateMuch); }};
}

DaemonAttack OfPodSpecs() {
  return {.prepare =
              [](DaemonSetup& setup) {
                setup.config +=
                    "compute-drivers: {attributes: {namespaces: [default], "
                    "when-missing: fallback}}\n";
              },
          .run =
              [](AttackedDaemon& daemon) {
                RunThem(daemon, 400, [](int number, PodSpec& pod) {
                  pod.annotations = {
                      {"cci.qrm.io/driver", "attributes"},
                      {"cci.qrm.io/spec",
                       Repeated(number % 2 == 0 ? "- [" : "x", 16'000) + std::to_string(number)}};
                });
              }};
}

}  // namespace

const std::map<std::string, DaemonAttack>& DaemonAttacks() {
  static const auto* const attacks = new std::map<std::string, DaemonAttack>{
      {"control-socket", OfSocket("control.sock", "/qrm.v1.Control/ListPods", 512 << 10)},
      {"pod-resources-socket",
       OfSocket("pod-resources.sock", "/v1.PodResourcesLister/List", 4 << 10)},
      {"registration-socket", OfSocket("registration/kubelet.sock",
                                       "/resourceplugin.v1alpha1.Registration/Register", 64 << 10)},
      {"advisor-socket", OfAdvisor()},
      {"plugin-answers", OfPluginAnswers()},
      {"nri-socket", OfRuntime()},
      {"cri-socket", OfCri()},
      {"kubelet-pods-socket", OfPodsApi()},
      {"kubelet-pod-resources", OfKubeletDevices()},
      {"cdi-directories", OfCdi()},
      {"kubelet-url", OfKubeletUrl()},
      {"metrics-address", OfPort("metrics-address", &Node::metrics_port)},
      {"probe-address", OfPort("probe-address", &Node::probe_port)},
      {"page-address", OfPort("page-address", &Node::page_port)},
      {"api-server-answers", OfApiServer()},
      {"pod-annotations",
       {.run = [](AttackedDaemon& daemon) { RunThem(daemon, 300, AnnotateMuch); }}},
      {"pod-spec", OfPodSpecs()},
      {"configuration", OfConfiguration()},
      {"state-dir", OfStateDirectory()},
  };
  return *attacks;
}

}  // namespace qrm::test
