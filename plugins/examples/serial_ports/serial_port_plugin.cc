// Gives each container an exclusive serial port: the device, the directory of its lock files, and a
// variable with its path.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <ranges>
#include <set>

#include <plugins/sdk/plugin.h>

class SerialPortPlugin final : public qrm::sdk::ResourcePlugin {
 public:
  // `sysfs`: where the kernel lists terminals, or a copy of its files.
  explicit SerialPortPlugin(std::string sysfs) : sysfs_(std::move(sysfs)) {}

  qrm::PluginOptions Options() const override {
    return {.need_reconcile = true};  // no topology alignment: ports have no NUMA node
  }

  qrm::Status Restore(const qrm::sdk::Grants& grants) override {
    held_.clear();
    for (auto& [key, grant] : grants) held_[key] = grant.allocation->devices.at(0).host_path;
    return qrm::OkStatus();
  }

  qrm::StatusOr<qrm::ResourceAllocation> Allocate(const qrm::ContainerRequest& request,
                                                  const qrm::TopologyHint&) override {
    for (const std::string& port : Ports()) {
      if (std::ranges::count(held_ | std::views::values, port) == 0) {
        held_[request.key] = port;
        return qrm::ResourceAllocation{.is_scalar_resource = true,
                                       .quantity = 1,
                                       .envs = {{"SERIAL_PORT", "/dev/serial"}},
                                       .mounts = {{"/run/lock/serial", "/run/lock", false}},
                                       .devices = {{"/dev/serial", port, "rw"}}};
      }
    }
    return qrm::Errorf(qrm::StatusCode::kResourceExhausted,
                       "cannot give a serial port: all are taken");
  }

  void Remove(const std::vector<qrm::ContainerKey>& containers) override {
    for (const auto& container : containers) held_.erase(container);
  }

 private:
  std::set<std::string> Ports() const {
    std::set<std::string> ports;
    for (const auto& entry : std::filesystem::directory_iterator(sysfs_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("ttyS")) ports.insert("/dev/" + name);
    }
    return ports;
  }

  const std::string sysfs_;
  std::map<qrm::ContainerKey, std::string> held_;
};

int main(int argc, char** argv) {
  std::string sysfs = "/sys/class/tty";
  const auto settings = qrm::sdk::ParseSettings("example.com/serial-port", argc, argv,
                                                {{"sysfs", "where terminals are listed", &sysfs}});
  SerialPortPlugin plugin(sysfs);
  const auto ended =
      settings.ok() ? qrm::sdk::RunPlugin(*settings, plugin) : qrm::Status(settings.status());
  if (!ended.ok()) std::cerr << ended.message() << "\n";
  return ended.ok() ? 0 : 1;
}
