// A machine with a cpu plugin on it, driven as the manager drives one: restarts, reloads, CPUs that
// go off and on, frequencies in files.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/state.h"
#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/manual_clock.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu {

/// Whether frequencies of CPUs are files that the plugin sets.
enum class Tuned { kNo, kYes };

class DrivenNode {
 public:
  DrivenNode(MachineParts parts, Tuned tuned) : parts_(std::move(parts)), tuned_(tuned) {
    SetOffline({});
    parts_.online = root_ / "sys/devices/system/cpu/online";
    if (is_tuned()) {
      parts_.root = root_.path();
      WriteFrequencies();
    }
    machine_ = Machine(parts_);
  }
  ~DrivenNode() { drive_->plugin().Retire(); }
  DrivenNode(const DrivenNode&) = delete;
  DrivenNode& operator=(const DrivenNode&) = delete;

  /// Call it before any request.
  void Start(const std::string& text) {
    config_ = Config(text);
    drive_ = std::make_unique<test::Drive>(MakePlugin());
    Begin();
  }
  /// Reloads with the configuration `text`.
  void Reload(const std::string& text) {
    config_ = Config(text);
    Restart();
  }
  void Restart() {
    drive_->plugin().Retire();
    drive_ = std::make_unique<test::Drive>(MakePlugin(), *drive_);
    Begin();
  }

  void SetOffline(const CpuSet& offline) {
    offline_ = offline;
    CpuSet online;
    for (const Cpu& cpu : parts_.cpus) {
      online.Add(cpu.id);
    }
    const std::filesystem::path folder = root_ / "sys/devices/system/cpu";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "online") << ToString(online - offline) << '\n';
  }

  const Machine& machine() const { return machine_; }
  const CpuSet& offline() const { return offline_; }
  const CpuPluginConfig& config() const { return config_; }
  bool is_tuned() const { return tuned_ == Tuned::kYes; }
  test::ManualClock& clock() { return clock_; }
  test::Drive& drive() { return *drive_; }
  const sdk::Grants& grants() const { return drive_->grants(); }

  /// The allocations of each container, as text. Without the containers' own part, which is the
  /// test's, not the plugin's.
  std::string Exported() const { return std::as_const(*drive_).plugin().ExportState({}); }

  bool Fits(const ContainerRequest& request) {
    const StatusOr<HintList> hints = drive_->plugin().Hints(request);
    return hints.ok() && !hints->IsImpossible();
  }

  std::vector<sdk::Pool> PoolList() const { return std::as_const(*drive_).plugin().Pools(); }
  PoolMap Pools() const { return Each(&sdk::Pool::cpus); }
  PoolMap Borrowed() const { return Each(&sdk::Pool::borrowed); }

  /// The exclusive CPUs of all containers.
  CpuSet Exclusive() const {
    CpuSet cpus;
    for (const auto& [key, grant] : grants()) {
      cpus |= grant.allocation->exclusive ? *CpuSet::Parse(grant.allocation->value) : CpuSet();
    }
    return cpus;
  }

  /// The bounds of a CPU's frequency.
  std::string TuningOf(int cpu) const {
    std::string bounds;
    for (const char* file : {"scaling_min_freq", "scaling_max_freq"}) {
      std::ifstream stream(PolicyOf(cpu) / file);
      std::string value;
      std::getline(stream, value);
      bounds += value + " ";
    }
    return bounds;
  }

 private:
  std::unique_ptr<sdk::ResourcePlugin> MakePlugin() {
    return *MakeCpuPlugin(config_, machine_, clock_);
  }
  void Begin() { drive_->plugin().Begin(is_tuned() ? root_.path() : ""); }

  PoolMap Each(CpuSet sdk::Pool::* member) const {
    PoolMap pools;
    for (const sdk::Pool& pool : PoolList()) {
      pools[pool.name] = pool.*member;
    }
    return pools;
  }

  std::filesystem::path PolicyOf(int cpu) const {
    return root_ / fmt::format("sys/devices/system/cpu/cpufreq/policy{}", cpu);
  }
  void WriteFrequencies() const {
    test::WriteSysfsFile(root_ / "proc/sys/kernel/random/boot_id", "first");
    for (const Cpu& cpu : parts_.cpus) {
      const std::pair<const char*, std::string> files[] = {
          {"affected_cpus", std::to_string(cpu.id)},
          {"cpuinfo_min_freq", "800000"},
          {"cpuinfo_max_freq", "3000000"},
          {"base_frequency", "2000000"},
          {"scaling_min_freq", "800000"},
          {"scaling_max_freq", "3000000"}};
      for (const auto& [name, value] : files) {
        test::WriteSysfsFile(PolicyOf(cpu.id) / name, value);
      }
    }
  }

  const test::TempDir root_ = test::TempDir::InMemory();
  MachineParts parts_;
  const Tuned tuned_;
  Machine machine_;
  CpuSet offline_;
  CpuPluginConfig config_;
  test::ManualClock clock_;
  std::unique_ptr<test::Drive> drive_;
};

}  // namespace qrm::cpu
