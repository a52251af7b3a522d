// What is available is the capacity less what pods request: a new capacity loses no pod.
#include "fake_resource.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "api/quantity.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

/// What `pod` requests, rounded up; 0 without the annotation.
StatusOr<double> RequestedAmount(const Pod& pod) {
  const auto text = pod.annotations.find(kFakeRequest);
  if (text == pod.annotations.end()) {
    return 0;
  }
  QRM_ASSIGN_OR_RETURN(const double request, ParseQuantity(text->second));
  return std::ceil(request);
}

class FakeResource final : public ExtendedResource {
 public:
  explicit FakeResource(double capacity) : available_(capacity) {}

  void AddPod(const Pod& pod) override { available_ -= RequestedAmount(pod).value_or(0); }
  void RemovePod(const Pod& pod) override { available_ += RequestedAmount(pod).value_or(0); }

  Admission AdmitPod(const Pod& pod) const override {
    const StatusOr<double> request = RequestedAmount(pod);
    if (!request.ok()) {
      return {.refusal = "annotation fake.qrm.io/request is not a quantity; correct the pod"};
    }
    return {.requested = *request, .available = available_};
  }

  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<FakeResource>(*this);
  }
  nlohmann::json Dump() const override { return available_; }

 private:
  double available_;
};

class FakeHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kFakeRequest);
    feed.Subscribe(
        kFakeStatuses, [](const nlohmann::json& body) { return TextAt(body, "/spec/nodeName"); },
        [&cache](const std::string& node, const nlohmann::json* body) {
          const auto capacity =
              body == nullptr ? std::nullopt : AmountAt(*body, "/spec/fakeResource");
          cache.SetExtendedResource(
              node, capacity.has_value() ? std::make_shared<FakeResource>(*capacity) : nullptr);
        });
    return OkStatus();
  }

  bool Wants(const Pod& pod) const override { return pod.annotations.contains(kFakeRequest); }
};

}  // namespace

std::unique_ptr<Handle> MakeFakeHandle() {
  return std::make_unique<FakeHandle>();
}

}  // namespace qrm::scheduler
