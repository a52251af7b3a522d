// What a container asks of the driver: lines of CPUs, each with its attributes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/attribute.h"

namespace qrm::cci {

/// CPUs that have the same attributes. Either `named`, or `any` of them.
struct SpecLine {
  CpuSet named;
  int any = 0;
  std::vector<Attribute> attributes;

  int Count() const { return any + named.Count(); }
  bool operator==(const SpecLine&) const = default;
};

/// All lines, in the order in which they are written.
using SpecLines = std::vector<SpecLine>;

/// All that a container asks for.
struct ComputeSpec {
  SpecLines lines;
  std::vector<Attribute> container;  ///< of all its threads
};

/// Name -> what it stands for.
using Policies = std::map<std::string, ComputeSpec>;

/// Lines of `cores` with those of `attributes`:
///
///   core-line = cpu-list | "*" [ count ]      "2"  "6-8"  "0,4"  "*" (one)  "*4"
///
/// There are as many lines of attributes as of cores, or one for all, or none, which is
/// "exclusive". Errors: kInvalidArgument naming line and column, for more than 1024 lines, and for
/// a CPU in two lines.
StatusOr<SpecLines> ParseSpec(const std::vector<std::string>& cores,
                              const std::vector<std::string>& attributes);

/// The mapping `{cores: ..., compute_attributes: ...}`, each a text of lines or a list of them;
/// `attributes` and `cpu attributes` are other names of the latter. A third key,
/// `container_attributes`, has one line of those. Errors: as above.
StatusOr<ComputeSpec> ReadSpec(const config::Section& section);

/// What a pod says: JSON or YAML of such a mapping, or the name of a policy. Nothing is the policy
/// "default", and where there is none, `cpus` CPUs of its own.
/// Errors: kInvalidArgument, for an unknown name with those that are known.
StatusOr<ComputeSpec> ReadPodSpec(const std::string& text, const Policies& policies, int cpus);

}  // namespace qrm::cci
