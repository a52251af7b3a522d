// A compute driver: takes the node's CPUs in turn, so that all of them wear alike.
#include <api/base/errorf.h>
#include <plugins/sdk/compute_driver.h>

using qrm::sdk::ComputeGrant;
using qrm::sdk::ComputeRequest;

class RoundRobin final : public qrm::sdk::ComputeDriver {
 public:
  // Nothing to prepare when a container starts.
  bool NeedsAdd() const override { return false; }

  qrm::StatusOr<ComputeGrant> Admit(const ComputeRequest& request) override {
    const int64_t wanted = request.milli_cpus / 1000;
    if (!request.spec.empty() || wanted < 1 || wanted * 1000 != request.milli_cpus) {
      return qrm::Errorf(qrm::StatusCode::kInvalidArgument,
                         "it takes no spec, and whole CPUs only; request 1, 2 or more");
    }
    if (request.available.Count() < wanted) {
      return qrm::Errorf(qrm::StatusCode::kResourceExhausted,
                         "{} CPUs are requested, and {} are free; remove a pod", wanted,
                         request.available.Count());
    }
    qrm::CpuSet cpus;
    while (cpus.Count() < wanted) {
      const int next = request.available.Next(last_);
      last_ = next < 0 ? request.available.First() : next;
      cpus |= qrm::CpuSet{last_};
    }
    ComputeGrant grant{.parts = {{.cpus = cpus}}};
    grant.envs["ROUND_ROBIN_CPUS"] = ToString(cpus);
    return grant;
  }

 private:
  int last_ = -1;
};

int main(int argc, char** argv) {
  RoundRobin driver;
  return qrm::sdk::DriverMain("round-robin", driver, argc, argv);
}
