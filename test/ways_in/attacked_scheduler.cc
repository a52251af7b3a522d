// Starts qrm-scheduler, and lists all ways of both programs.
#include "test/ways_in/attacked_scheduler.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "test/support/await.h"
#include "test/ways_in/attacked_node.h"
#include "test/ways_in/daemon_attacks.h"

namespace qrm::test {
namespace {

/// charts/qrm-scheduler/values.yaml.
constexpr std::size_t kSchedulerLimitBytes = std::size_t{512} << 20;
constexpr std::chrono::seconds kPatience{60};

}  // namespace

AttackedScheduler::AttackedScheduler(SchedulerAttack attack, const std::string& bin_dir)
    : attack_(std::move(attack)), limit_(kSchedulerLimitBytes), scheduler_(dir_.path(), bin_dir) {}

void AttackedScheduler::PutPlainPod(const std::string& name) {
  scheduler_.cluster().Put(
      "/api/v1/pods", {{"metadata", {{"namespace", "d"}, {"name", name}, {"uid", "uid-" + name}}},
                       {"spec", {{"containers", nlohmann::json::array({{{"name", "c"}}})}}}});
}

Status AttackedScheduler::Start() {
  PutPlainPod("honest");
  QRM_RETURN_IF_ERROR(scheduler_.Start());
  pid_ = scheduler_.process().pid();
  limit_.Add(pid_);
  Await([this] { return Serve().ok(); });
  return Serve().status();
}

StatusOr<std::chrono::nanoseconds> AttackedScheduler::Serve() {
  return scheduler_.Filter("d/honest");
}

Status AttackedScheduler::Attack() {
  QRM_RETURN_IF_ERROR(attack_({.dir = dir_.path(),
                               .program = scheduler_.program(),
                               .cluster = scheduler_.cluster(),
                               .port = scheduler_.port(),
                               .monitor_port = scheduler_.monitor_port()}));
  // All has been read when what was written last is known.
  const std::string last = "last" + std::to_string(++attacks_);
  scheduler_.cluster().Put("/api/v1/nodes", {{"metadata", {{"name", last}}}});
  PutPlainPod(last);
  Status pod;
  Status node;
  const bool read = Await(
      [&] {
        pod = scheduler_.Filter("d/" + last).status();
        node = scheduler_.Filter("d/" + last, last).status();
        return pod.ok() && MessageOf(node).find("not known yet") == std::string::npos;
      },
      kPatience);
  if (!read) {
    return Errorf(StatusCode::kDeadlineExceeded, "the attack has not been read: {}; {}",
                  MessageOf(pod), MessageOf(node));
  }
  scheduler_.cluster().DropHistory();
  return OkStatus();
}

std::vector<WayIn> AttackedWays() {
  std::vector<WayIn> ways;
  for (const auto& [way, attack] : DaemonAttacks()) {
    ways.push_back({"qrmd", way, [&attack = attack](const std::string& bin_dir) {
                      return std::make_unique<AttackedNode>(attack, bin_dir);
                    }});
  }
  for (const auto& [way, attack] : SchedulerAttacks()) {
    ways.push_back({"qrm-scheduler", way, [&attack = attack](const std::string& bin_dir) {
                      return std::make_unique<AttackedScheduler>(attack, bin_dir);
                    }});
  }
  return ways;
}

}  // namespace qrm::test
