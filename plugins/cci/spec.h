// A container's request to the driver, or a policy of its configuration: lines of CPUs, each with
// its attributes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/attribute.h"

namespace qrm::cci {

/// CPUs with the same attributes: either the CPUs `named`, or a number of `any` CPUs; neither means
/// all CPUs that the container requests.
struct SpecLine {
  CpuSet named;
  int any = 0;
  bool is_bare = false;  ///< `any` has no star: earlier versions read it as the number of one CPU
  std::vector<Attribute> attributes;

  int Count() const { return any + named.Count(); }
  bool operator==(const SpecLine&) const = default;
};

/// All lines, in their written order.
using SpecLines = std::vector<SpecLine>;

/// A container's whole request.
struct ComputeSpec {
  SpecLines lines;
  std::vector<Attribute> container;  ///< for all its threads
};

/// Name -> specification.
using Policies = std::map<std::string, ComputeSpec>;

/// Reads lines of `cores` with their lines of `attributes`:
///
///   core-line = count | "*" [ count ] | [ "cpu:" ] cpu-list     "2"  "*2"  "*" (one)  "cpu:2"
///   "6-8"
///
/// Without `cores`, one line has all CPUs that the container requests. There are as many lines of
/// attributes as of cores, or one for all, or none, which means "exclusive". Errors:
/// kInvalidArgument with line and column; also for more than 1024 lines, and for a CPU in two
/// lines.
StatusOr<SpecLines> ParseSpec(const std::vector<std::string>& cores,
                              const std::vector<std::string>& attributes);

/// Reads the mapping `{cores: ..., compute_attributes: ...}`. Each value is a text of lines or a
/// list of lines. `attributes` and `cpu attributes` are other names of `compute_attributes`. A
/// third key, `container_attributes`, has one line. Errors: as above.
StatusOr<ComputeSpec> ReadSpec(const config::Section& section);

/// Reads a pod's specification: JSON or YAML of such a mapping, or the name of a policy. An empty
/// text means the policy "default"; without that policy, `cpus` exclusive CPUs. Errors:
/// kInvalidArgument; for an unknown name, with the known names.
StatusOr<ComputeSpec> ReadPodSpec(const std::string& text, const Policies& policies, int cpus);

/// Reads `policies: {NAME: {cores: ..., compute_attributes: ...}}`. Errors: kInvalidArgument with
/// file, line and key for anything else.
StatusOr<Policies> ParseConfig(const config::Section& file);

}  // namespace qrm::cci
