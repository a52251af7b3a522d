// A compute driver: takes the node's CPUs in turn, so that all are used equally.
#include <api/base/errorf.h>
#include <plugins/sdk/compute_driver.h>

using qrm::sdk::ComputeGrant;
using qrm::sdk::ComputeRequest;

class RoundRobin final : public qrm::sdk::ComputeDriver {
 public:
  // A container's start needs no preparation.
  bool NeedsAdd() const override { return false; }

  qrm::StatusOr<ComputeGrant> Admit(const ComputeRequest& request) override {
    const int64_t wanted = request.milli_cpus / 1000;
    if (!request.spec.empty() || wanted < 1 || wanted * 1000 != request.milli_cpus) {
      return qrm::Errorf(qrm::StatusCode::kInvalidArgument,
                         "it accepts no spec, and only whole CPUs; request 1, 2 or more");
    }
    if (request.available.Count() < wanted) {
      return qrm::Errorf(qrm::StatusCode::kResourceExhausted,
                         "{} CPUs are requested, but {} are free; delete a pod", wanted,
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
