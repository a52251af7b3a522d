// Counts the bandwidth of each class on its own: classes do not lend to each other.
#include "disk_io_resource.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/quantity.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

struct Bandwidth {
  double read = 0;
  double write = 0;
};

struct Request {
  std::string io_class;
  Bandwidth bandwidth;
};

/// Whole bytes per second, so that sums do not depend on their order.
StatusOr<double> AmountOf(const Pod& pod, const char* key) {
  const auto text = pod.annotations.find(key);
  if (text == pod.annotations.end()) {
    return 0;
  }
  QRM_ASSIGN_OR_RETURN(const double amount, ParseQuantity(text->second));
  return std::ceil(amount);
}

/// Without a class when the pod asks for nothing.
StatusOr<Request> RequestOf(const Pod& pod) {
  const auto io_class = pod.annotations.find(kDiskIoClass);
  if (io_class == pod.annotations.end()) {
    return Request();
  }
  Request request{.io_class = io_class->second};
  QRM_ASSIGN_OR_RETURN(request.bandwidth.read, AmountOf(pod, kDiskIoRead));
  QRM_ASSIGN_OR_RETURN(request.bandwidth.write, AmountOf(pod, kDiskIoWrite));
  return request;
}

class DiskIoResource final : public ExtendedResource {
 public:
  explicit DiskIoResource(std::map<std::string, Bandwidth> classes) : free_(std::move(classes)) {
    for (const auto& [name, bandwidth] : free_) {
      offered_.insert(name);
    }
  }

  void AddPod(const Pod& pod) override { Take(pod, 1); }
  void RemovePod(const Pod& pod) override { Take(pod, -1); }

  Admission AdmitPod(const Pod& pod) const override {
    const StatusOr<Request> request = RequestOf(pod);
    if (!request.ok()) {
      return {.refusal = "its annotations for disk-io are no quantities; correct the pod"};
    }
    if (request->io_class.empty()) {
      return {};
    }
    const auto free = free_.find(request->io_class);
    if (!offered_.contains(request->io_class)) {
      return {.refusal = "the node has no such class of disk-io"};
    }
    if (request->bandwidth.read > 0 && request->bandwidth.read > free->second.read) {
      return {.requested = request->bandwidth.read, .available = free->second.read};
    }
    return {.requested = request->bandwidth.write, .available = free->second.write};
  }

  // The class that is left fuller after this pod is the better place: large requests keep theirs.
  std::optional<int> Score(const Pod& pod) const override {
    const Admission admission = AdmitPod(pod);
    return admission.available <= 0
               ? std::nullopt
               : std::optional(static_cast<int>(
                     100 * std::min(1.0, admission.requested / admission.available)));
  }

  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<DiskIoResource>(*this);
  }
  nlohmann::json Dump() const override {
    nlohmann::json classes = nlohmann::json::object();
    for (const auto& [name, free] : free_) {
      classes[name] = {{"read", free.read}, {"write", free.write}};
    }
    return classes;
  }

 private:
  void Take(const Pod& pod, double times) {
    const Request request = RequestOf(pod).value_or(Request());
    if (request.io_class.empty()) {
      return;
    }
    Bandwidth& free = free_[request.io_class];  // also of a class that the node has no more
    free.read -= times * request.bandwidth.read;
    free.write -= times * request.bandwidth.write;
    if (!offered_.contains(request.io_class) && free.read == 0 && free.write == 0) {
      free_.erase(request.io_class);
    }
  }

  std::map<std::string, Bandwidth> free_;  // below 0 where pods have more than there is
  std::set<std::string> offered_;
};

/// The classes of the custom resource; none if it has none.
std::map<std::string, Bandwidth> ReadClasses(const nlohmann::json& body) {
  std::map<std::string, Bandwidth> classes;
  const nlohmann::json::json_pointer path("/spec/classes");
  if (body.contains(path) && body.at(path).is_object()) {
    for (const auto& [name, bandwidth] : body.at(path).items()) {
      classes[name] = {.read = AmountAt(bandwidth, "/read").value_or(0),
                       .write = AmountAt(bandwidth, "/write").value_or(0)};
    }
  }
  return classes;
}

class DiskIoHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    for (const char* key : {kDiskIoClass, kDiskIoRead, kDiskIoWrite}) {
      feed.ReadAnnotations(key);
    }
    feed.Subscribe(
        kDiskIoStatuses, [](const nlohmann::json& body) { return TextAt(body, "/spec/nodeName"); },
        [&cache](const std::string& node, const nlohmann::json* body) {
          cache.SetExtendedResource(
              node,
              body == nullptr ? nullptr : std::make_shared<DiskIoResource>(ReadClasses(*body)));
        });
    return OkStatus();
  }

  bool Wants(const Pod& pod) const override { return pod.annotations.contains(kDiskIoClass); }
};

}  // namespace

std::unique_ptr<Handle> MakeDiskIoHandle() {
  return std::make_unique<DiskIoHandle>();
}

}  // namespace qrm::scheduler
