// Keeps nodes within a power budget: a ConfigMap has the budgets, and a collector's file what nodes
// draw. Pods ask for watts by the annotation power.example.com/watts.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "api/base/section.h"
#include "api/quantity.h"
#include "scheduler/extender/scheduler_main.h"

namespace {

using namespace qrm::scheduler;  // NOLINT(google-build-using-namespace): an author's own file

constexpr char kWatts[] = "power.example.com/watts";
constexpr char kConfigMaps[] = "kube-system/configmaps.v1";
constexpr char kBudgets[] = "kube-system/power-budgets";

double WattsOf(const Pod& pod) {
  const auto text = pod.annotations.find(kWatts);
  return text == pod.annotations.end() ? 0 : qrm::ParseQuantity(text->second).value_or(0);
}

struct Power {
  double budget = 0;
  double measured = 0;  // what the node draws now
};

class PowerResource final : public ExtendedResource {
 public:
  explicit PowerResource(Power power) : power_(power) {}

  void AddPod(const Pod& pod) override { requested_ += WattsOf(pod); }
  void RemovePod(const Pod& pod) override { requested_ -= WattsOf(pod); }
  Admission AdmitPod(const Pod& pod) const override {
    return {.requested = WattsOf(pod),
            .available = power_.budget - std::max(requested_, power_.measured)};
  }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<PowerResource>(*this);
  }
  nlohmann::json Dump() const override {
    return {{"budget", power_.budget}, {"measured", power_.measured}, {"requested", requested_}};
  }

 private:
  Power power_;
  double requested_ = 0;
};

class PowerHandle final : public Handle {
 public:
  qrm::Status Configure(const qrm::config::Section& options) override {
    QRM_RETURN_IF_ERROR(options.AllowKeys({"measurements"}));
    QRM_ASSIGN_OR_RETURN(file_, options.Text("measurements", ""));
    return qrm::OkStatus();
  }

  qrm::Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kWatts);
    feed.SubscribeObjects(kConfigMaps, [&](const std::string& name, const nlohmann::json* body) {
      if (name == kBudgets) {
        for (auto& [node, power] : nodes_) {
          power.budget = 0;
        }
        const auto budgets =
            body == nullptr ? nlohmann::json() : body->value("data", nlohmann::json());
        for (const auto& [node, watts] : budgets.items()) {
          nodes_[node].budget = qrm::ParseQuantity(watts.get<std::string>()).value_or(0);
        }
        Set(cache);
      }
    });
    collector_ = std::thread([this, &cache] { Collect(cache); });
    return qrm::OkStatus();
  }
  void Stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stop_.notify_all();
    collector_.join();
  }
  bool Wants(const Pod& pod) const override { return WattsOf(pod) > 0; }

 private:
  void Collect(ExtendedCache& cache) {
    std::unique_lock lock(mutex_);
    do {
      std::map<std::string, double> watts;
      std::ifstream file(file_);  // NODE WATTS, a line for each
      for (std::string node; file >> node;) {
        file >> watts[node];
      }
      cache.Post([this, watts](ExtendedCache& now) {
        for (auto& [node, power] : nodes_) {
          power.measured = watts.contains(node) ? watts.at(node) : 0;
        }
        Set(now);
      });
    } while (!stop_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; }));
  }
  void Set(ExtendedCache& cache) {
    for (const auto& [node, power] : nodes_) {
      cache.SetExtendedResource(node, std::make_shared<PowerResource>(power));
    }
  }

  std::map<std::string, Power> nodes_;  // the writer's
  std::string file_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread collector_;
};

}  // namespace

int main(int argc, char** argv) {
  return SchedulerMain({{"power", [] { return std::make_unique<PowerHandle>(); }}}, argc, argv);
}
