// Makes cpu plugins of the proposal's examples for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/plugins/example_machine.h"

namespace qrm::cpu {

inline constexpr char kTwoPools[] = R"(
default-pool: online
pools:
  online: {cpus: "0-37,40-77", roles: [online-micro_service]}
  offline: {cpus: "38-39,78-79", roles: [ETL]}
)";

inline constexpr char kThreeRoles[] = R"(
reserved-cpus: 0-1,40-41
roles:
  storage-service: {}
  reranker: {}
  numa-enhancement: {share-numa-with: [numa-enhancement]}
)";

inline CpuPluginConfig Config(const std::string& text) {
  const StatusOr<config::Section> section = config::Section::Parse(text, "cpu.yaml");
  const StatusOr<CpuPluginConfig> config = ParseCpuConfig(*section);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

inline std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& text,
                                                 const Machine& machine = test::ExampleMachine()) {
  auto plugin = MakeCpuPlugin(Config(text), machine);
  EXPECT_TRUE(plugin.ok()) << plugin.status();
  return *std::move(plugin);
}

}  // namespace qrm::cpu
