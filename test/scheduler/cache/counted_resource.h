// An extended resource for tests that fails when pods are added or removed twice.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/number.h"
#include "scheduler/cache/handle.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler::test {

inline constexpr char kCounted[] = "counted";
inline constexpr char kCountedObjects[] = "countedstatuses";
inline constexpr char kCountedRequest[] = "test/request";
inline constexpr char kCountedDecision[] = "test/decided";

inline int RequestOf(const Pod& pod) {
  const auto text = pod.annotations.find(kCountedRequest);
  return text == pod.annotations.end() ? 0 : ParseNumber<int>(text->second).value_or(0);
}

/// A capacity less the requests of its pods; a pod that is added twice, or removed with other
/// values than it was added, fails the test.
class CountedResource final : public ExtendedResource {
 public:
  explicit CountedResource(int capacity) : capacity_(capacity) {}

  void AddPod(const Pod& pod) override {
    EXPECT_TRUE(requests_.emplace(pod.uid, RequestOf(pod)).second) << pod.uid;
  }
  void RemovePod(const Pod& pod) override {
    const auto found = requests_.find(pod.uid);
    ASSERT_NE(found, requests_.end()) << pod.uid;
    EXPECT_EQ(found->second, RequestOf(pod)) << pod.uid;
    requests_.erase(found);
  }
  Admission AdmitPod(const Pod& pod) const override {
    return {.requested = static_cast<double>(RequestOf(pod)),
            .available = static_cast<double>(available())};
  }
  StatusOr<StringMap> Decide(const Pod& pod) const override {
    return StringMap{{kCountedDecision, "for " + pod.name}};
  }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<CountedResource>(*this);
  }
  nlohmann::json Dump() const override {
    return {{"capacity", capacity_}, {"available", available()}};
  }

  int available() const {
    int left = capacity_;
    for (const auto& [uid, request] : requests_) {
      left -= request;
    }
    return left;
  }

 private:
  int capacity_;
  std::map<std::string, int> requests_;  // by UID
};

class CountedHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kCountedRequest);
    feed.ReadDecision(kCountedDecision);
    feed.Subscribe(
        kCountedObjects, [](const nlohmann::json& body) { return TextAt(body, "/node"); },
        [&cache](const std::string& node, const nlohmann::json* body) {
          cache.SetExtendedResource(node, body == nullptr
                                              ? nullptr
                                              : std::make_shared<CountedResource>(static_cast<int>(
                                                    AmountAt(*body, "/capacity").value_or(0))));
        });
    return OkStatus();
  }
  bool Wants(const Pod& pod) const override { return RequestOf(pod) > 0; }
};

inline HandleRegistry CountedHandles() {
  HandleRegistry handles;
  handles.Register(kCounted, [] { return std::make_unique<CountedHandle>(); });
  return handles;
}

inline Pod MakePod(const std::string& uid, int request, const std::string& node = "") {
  return {.uid = uid,
          .pod_namespace = "ns",
          .name = "pod-" + uid,
          .node = node,
          .annotations = {{kCountedRequest, std::to_string(request)}}};
}

inline Object MakeObject(const std::string& name, const std::string& node, int capacity) {
  return {.name = name,
          .body = std::make_shared<const nlohmann::json>(
              nlohmann::json{{"node", node}, {"capacity", capacity}})};
}

/// What node has left by the dump; -1000 when the dump has no such resource.
inline int AvailableIn(const std::string& dump, const std::string& node) {
  const nlohmann::json parsed = nlohmann::json::parse(dump);
  const nlohmann::json::json_pointer path("/nodes/" + node + "/resources/counted/available");
  return parsed.contains(path) ? parsed.at(path).get<int>() : -1000;
}

}  // namespace qrm::scheduler::test
