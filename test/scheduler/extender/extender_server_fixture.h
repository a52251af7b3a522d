// qrm-scheduler against an API server with all real faults.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/examples/fake_resource.h"
#include "scheduler/extender/extender_server.h"
#include "scheduler/topology/resource_types.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"

namespace qrm::scheduler {

using nlohmann::json;
using test::Await;

inline constexpr char kPodsPath[] = "/api/v1/pods";
inline constexpr char kNodesPath[] = "/api/v1/nodes";
inline constexpr char kStatuses[] = "/apis/fake.qrm.io/v1/nodefakeresourcestatuses";
inline constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/leases";
inline json PodObject(const std::string& name, int request) {
  return {{"metadata",
           {{"namespace", "d"},
            {"name", name},
            {"uid", "uid-" + name},
            {"annotations", {{"fake.qrm.io/request", std::to_string(request)}}}}},
          {"spec", {{"containers", json::array({{{"name", "c"}}})}}}};
}

class ExtenderServerTest : public testing::Test {
 protected:
  ExtenderServerTest() {
    PutNode("n1", 10);
    PutNode("n2", 2);
  }

  void PutNode(const std::string& name, int capacity) {
    cluster_.Put(kNodesPath,
                 {{"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "8"}}}}}});
    PutCapacity(name, capacity);
  }
  void PutCapacity(const std::string& node, int capacity) {
    cluster_.Put(kStatuses, {{"metadata", {{"name", node}}},
                             {"spec", {{"nodeName", node}, {"fakeResource", capacity}}}});
  }
  void PutPod(const std::string& name, int request) {
    cluster_.Put(kPodsPath, PodObject(name, request));
  }
  json PodIn(const std::string& name) const { return cluster_.Find(kPodsPath, "d/" + name); }
  std::string NodeOf(const std::string& name) const {
    return PodIn(name).value(json::json_pointer("/spec/nodeName"), std::string());
  }

  void Start(std::vector<std::string> resources = {"fake"}) {
    ServeOptions options{.address = "127.0.0.1:0",
                         .monitor_address = "127.0.0.1:0",
                         .factories = factories_,
                         .resources = std::move(resources),
                         .unknown = unknown_,
                         .failing = failing_,
                         .lease_name = lease_name_,
                         .lease_namespace = "qrm",
                         .stale_after = stale_after_,
                         .preemption = preemption_};
    options.bind_timeout = std::chrono::milliseconds(2000);
    auto server = ExtenderServer::Start(options, cluster_.access());
    ASSERT_TRUE(test::IsOk(server.status()));
    server_ = *std::move(server);
  }
  void StartReady(std::vector<std::string> resources = {"fake"}) {
    Start(std::move(resources));
    ASSERT_TRUE(Await([&] { return Get(server_->monitor_port(), "/readyz") == "ok\n"; }))
        << Get(server_->monitor_port(), "/readyz");
  }

  /// `fields`: headers, each with its line end.
  static std::string Exchange(
      int port, const std::string& head, const std::string& body,
      const std::string& fields = "Host: localhost\r\nContent-Type: application/json\r\n") {
    boost::asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(port));
    stream << head << " HTTP/1.1\r\n"
           << fields << "Connection: close\r\nContent-Length: " << body.size() << "\r\n\r\n"
           << body << std::flush;
    const std::string answer{std::istreambuf_iterator<char>(stream), {}};
    const auto end = answer.find("\r\n\r\n");
    return end == std::string::npos ? answer : answer.substr(end + 4);
  }
  static std::string Get(int port, const std::string& path) {
    return Exchange(port, "GET " + path, "");
  }
  json Ask(const std::string& verb, const json& body) const {
    return json::parse(Exchange(server_->port(), "POST /" + verb, body.dump()), nullptr, false);
  }
  json Filter(const std::string& pod) const {
    return Ask("filter", {{"Pod", PodIn(pod)}, {"Nodes", nullptr}, {"NodeNames", {"n1", "n2"}}});
  }
  std::string Bind(const std::string& pod, const std::string& node) const {
    std::string error;
    // The leader binds once it has listed the pods; kube-scheduler tries again, too.
    (void)Await([&] {
      error = ErrorOfBind(pod, node);
      return error.find("has not come yet") == std::string::npos;
    });
    return error;
  }
  std::string ErrorOfBind(const std::string& pod, const std::string& node) const {
    return Ask("bind", {{"PodName", pod},
                        {"PodNamespace", "d"},
                        {"PodUID", "uid-" + pod},
                        {"Node", node}})["Error"];
  }
  std::ptrdiff_t Bindings() const {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(),
                         [](const std::string& request) { return request.ends_with("/binding"); });
  }
  bool IsWoken(const std::string& pod) const {
    return PodIn(pod).contains(json::json_pointer("/metadata/annotations/qrm.io~1room-seen"));
  }
  std::ptrdiff_t Wakes() const {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
      return request.starts_with("PATCH /api/v1/namespaces/d/pods/");
    });
  }
  bool CacheEqualsARebuild() const {
    return json::parse(Get(server_->port(), "/dump?compare"))["equal"] == true;
  }

  test::FakeApiServer cluster_;
  static HandleFactories TestFactories() {
    HandleFactories factories = ResourceFactories();
    factories[kFakeResource] = MakeFakeHandle;
    return factories;
  }
  HandleFactories factories_ = TestFactories();
  WhenUnknown unknown_ = WhenUnknown::kFilter;
  WhenUnknown failing_ = WhenUnknown::kFilter;
  std::string lease_name_ = "qrm-scheduler";
  std::chrono::milliseconds stale_after_{10'000};
  bool preemption_ = false;
  std::unique_ptr<ExtenderServer> server_;
};

}  // namespace qrm::scheduler
