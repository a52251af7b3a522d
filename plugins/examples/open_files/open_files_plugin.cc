// Limits how many files each process of a container may open, by class: few or many.
#include <fstream>

#include <sys/resource.h>

#include <api/base/cgroup.h>
#include <api/base/errorf.h>
#include <plugins/sdk/class_plugin.h>

using qrm::sdk::ClassTarget;

class OpenFiles final : public qrm::sdk::ClassPlugin {
 public:
  qrm::sdk::ClassType List() const override {
    qrm::sdk::ClassType type;
    for (const auto& [name, limit] : limits_) {
      if (!name.empty()) type.classes.push_back({name, std::to_string(limit) + " files"});
    }
    return type;
  }

  // The runtime sets nothing at creation: Apply comes before the first instruction.
  qrm::StatusOr<qrm::sdk::ClassOptions> Resolve(const std::string&) const override {
    return qrm::sdk::ClassOptions{};
  }

  qrm::Status Refresh(const std::set<std::string>&) override { return qrm::OkStatus(); }

  qrm::Status Apply(const ClassTarget& target, const std::string&, const std::string& to) override {
    const auto limit = limits_.find(to);
    if (limit == limits_.end()) {
      return qrm::Errorf(qrm::StatusCode::kFailedPrecondition,
                         "there is no class {}; choose few or many", to);
    }
    // A process that was forked meanwhile is found by the next check.
    for (int look = 0; look < 10; ++look) {
      auto others = ProcessesWithout(target, limit->second);
      if (!others.ok() || others->empty()) return others.status();
      for (const pid_t process : *others) SetLimit(process, limit->second);
    }
    return qrm::Errorf(qrm::StatusCode::kUnavailable,
                       "the container forks too fast; it is retried");
  }

  qrm::StatusOr<std::string> ReadBack(const ClassTarget& target, const std::string& name) override {
    const auto limit = limits_.find(name);
    if (limit == limits_.end()) return "its class no longer exists";
    auto others = ProcessesWithout(target, limit->second);
    if (!others.ok()) return others.status();
    return others->empty() ? "" : std::to_string(others->size()) + " processes have another limit";
  }

 private:
  static qrm::StatusOr<std::vector<pid_t>> ProcessesWithout(const ClassTarget& target,
                                                            rlim_t limit) {
    auto freezer = qrm::FindCgroupHierarchy("/sys/fs/cgroup", "freezer", "memory");
    if (!freezer.ok()) return freezer.status();
    std::ifstream file(freezer->root + qrm::CgroupPath(target.cgroups_path) + "/cgroup.procs");
    if (!file) return qrm::Errorf(qrm::StatusCode::kNotFound, "its cgroup is gone");
    std::vector<pid_t> processes;
    rlimit now;
    for (pid_t process = 0; file >> process;) {
      if (prlimit(process, RLIMIT_NOFILE, nullptr, &now) == 0 &&
          now.rlim_cur != std::min(limit, now.rlim_max)) {
        processes.push_back(process);
      }
    }
    return processes;
  }

  static void SetLimit(pid_t process, rlim_t limit) {
    rlimit now;
    if (prlimit(process, RLIMIT_NOFILE, nullptr, &now) != 0) return;  // it has ended
    now.rlim_cur = std::min(limit, now.rlim_max);
    prlimit(process, RLIMIT_NOFILE, &now, nullptr);
  }

  // Containers without a class get Linux's default.
  const std::map<std::string, rlim_t> limits_ = {{"", 1024}, {"few", 64}, {"many", 4096}};
};

int main(int argc, char** argv) {
  OpenFiles plugin;
  return qrm::sdk::PluginMain("open-files.example.com", plugin, argc, argv);
}
