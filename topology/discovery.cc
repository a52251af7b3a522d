// Loads hwloc topologies from four sources.
#include "topology/discovery.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <hwloc.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/mutex.h"
#include "api/base/number.h"
#include "topology/machine_objects.h"
#include "topology/machine_text.h"

namespace qrm {
namespace {

namespace fs = std::filesystem;

using OutsideCpuset = MachineSource::OutsideCpuset;

/// The largest known exports have a few megabytes; a device file or a log has no end.
constexpr std::uintmax_t kMaxXmlBytes = std::uintmax_t{64} << 20U;

/// Many times what machines have. hwloc compares each object with those beside it: a hundred
/// thousand packages would take it a minute.
constexpr uint64_t kMostSyntheticCpus = 8192;

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// Sets environment variables and puts back what they were.
class ScopedEnvironment {
 public:
  void Set(const char* name, const std::string& value) {
    const char* const before = std::getenv(name);
    saved_.emplace_back(name,
                        before == nullptr ? std::nullopt : std::optional<std::string>(before));
    setenv(name, value.c_str(), 1);
  }
  ScopedEnvironment() = default;
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment() {
    for (const auto& [name, value] : saved_) {
      if (value.has_value()) {
        setenv(name, value->c_str(), 1);
      } else {
        unsetenv(name);
      }
    }
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> saved_;
};

StatusOr<Topology> NewTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot read the machine: hwloc cannot start: {}; free memory",
                  std::strerror(errno));
  }
  Topology topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return topology;
}

StatusOr<MachineParts> Parts(MachineObjects objects, OutsideCpuset outside_cpuset,
                             std::string_view what) {
  StatusOr<MachineParts> parts = PartsOf(std::move(objects), outside_cpuset);
  return parts.ok() ? std::move(parts) : Annotate(parts.status(), what);
}

StatusOr<MachineParts> Load(const Topology& topology, OutsideCpuset outside_cpuset,
                            std::string_view what, std::string_view remedy) {
  if (hwloc_topology_load(topology.get()) != 0) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}: hwloc finds no machine in it; {}",
                  what, remedy);
  }
  return Parts(ReadObjects(topology.get()), outside_cpuset, what);
}

/// hwloc drops NUMA nodes that contradict each other; says so by comparing with what sysfs lists.
void WarnOfDroppedNodes(const fs::path& root, MachineParts& parts) {
  constexpr std::string_view kPrefix = "node";
  NumaMask listed;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/devices/system/node", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.rfind(kPrefix, 0) != 0) {
      continue;
    }
    const int id = ParseNumber<int>(name.substr(kPrefix.size())).value_or(-1);
    if (id >= 0 && id < IdSet::kMaxIds) {
      listed.Add(id);
    }
  }
  for (const NumaNode& node : parts.nodes) {
    listed.Remove(node.id);
  }
  if (!listed.Empty()) {
    parts.warnings.push_back(fmt::format(
        "NUMA nodes {} of sysfs are left out: they contradict other nodes or are not allowed to "
        "this process",
        ToString(listed)));
  }
}

/// 0 when it cannot be read.
uint64_t MemTotalOf(const fs::path& root) {
  constexpr std::string_view kName = "MemTotal:";
  std::ifstream meminfo(root / "proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  return meminfo >> name >> kibibytes && name == kName ? kibibytes * 1024 : 0;
}

/// The CPUs of the boot parameter isolcpus. The kernel also lists CPUs that a cpuset isolates; they
/// belong to the owner of that cpuset. Source: kernel, Documentation/admin-guide/kernel-parameters.
CpuSet IsolatedOf(const fs::path& root) {
  std::ifstream command_line(root / "proc/cmdline");
  std::string word;
  while (command_line >> word && word.rfind("isolcpus=", 0) != 0) {
  }
  if (!command_line) {
    return {};
  }
  std::ifstream list(root / "sys/devices/system/cpu/isolated");
  std::string cpus;
  std::getline(list, cpus);
  return CpuSet::Parse(cpus).value_or(CpuSet());
}

/// Adds what hwloc does not say of the machine with /proc and /sys below `root`.
MachineParts WithKernelFiles(MachineParts parts, const std::string& root) {
  WarnOfDroppedNodes(root, parts);
  parts.memory_bytes = MemTotalOf(root);
  parts.isolated = IsolatedOf(root);
  parts.online = root + "/sys/devices/system/cpu/online";
  parts.root = root;
  return parts;
}

StatusOr<MachineParts> LoadLive(OutsideCpuset outside_cpuset) {
  QRM_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  QRM_ASSIGN_OR_RETURN(MachineParts parts,
                       Load(topology, outside_cpuset, "this machine", "mount /proc and /sys"));
  return WithKernelFiles(std::move(parts), "/");
}

StatusOr<MachineParts> LoadFsRoot(const std::string& directory, OutsideCpuset outside_cpuset) {
  std::error_code error;
  if (!fs::is_directory(fs::path(directory) / "sys", error)) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read machine {}: it holds no directory sys; name the folder that a sysfs "
                  "copy was unpacked into",
                  directory);
  }
  static Mutex environment;  // one reader at a time may borrow the process's environment
  const MutexLock lock(environment);
  ScopedEnvironment variables;
  variables.Set("HWLOC_FSROOT", directory);
  variables.Set("HWLOC_COMPONENTS", "linux,stop");
  variables.Set("HWLOC_THISSYSTEM", "0");
  variables.Set("HWLOC_HIDE_ERRORS", "2");
  QRM_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  QRM_ASSIGN_OR_RETURN(
      MachineParts parts,
      Load(topology, outside_cpuset, "machine " + directory,
           "name the folder that a copy of a machine's /sys and /proc was unpacked into"));
  return WithKernelFiles(std::move(parts), directory);
}

StatusOr<MachineParts> LoadXmlFile(const std::string& file, OutsideCpuset outside_cpuset) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    return Errorf(
        StatusCode::kNotFound,
        "cannot read machine {}: there is no such file; name an XML file that lstopo wrote", file);
  }
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMaxXmlBytes) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read machine {}: it is not a regular file of up to {} bytes; name an XML "
                  "file that lstopo wrote",
                  file, kMaxXmlBytes);
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string xml((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read machine {}: {}; name an XML file that lstopo wrote", file,
                  std::strerror(errno));
  }
  StatusOr<MachineObjects> objects = ReadXml(xml);
  if (!objects.ok()) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot read machine {}: it is not hwloc XML: {}; write one with: lstopo FILE.xml", file,
        MessageOf(objects.status()));
  }
  return Parts(*std::move(objects), outside_cpuset, "machine " + file);
}

/// Whether the counts in `description`, such as 2, 4 and 2 in "package:2 [numa] l3:4 pu:2", make
/// more than kMostSyntheticCpus.
bool HasTooManyCpus(std::string_view description) {
  uint64_t cpus = 1;
  int parentheses = 0;  // in which attributes are
  for (std::size_t i = 0; i < description.size(); ++i) {
    parentheses += description[i] == '(' ? 1 : description[i] == ')' ? -1 : 0;
    const bool begins = i == 0 || description[i - 1] == ':' || description[i - 1] == ' ';
    if (parentheses > 0 || !begins) {
      continue;
    }
    uint64_t count = 0;
    const char* const first = description.data() + i;
    const auto read = std::from_chars(first, description.data() + description.size(), count);
    if (read.ec == std::errc::result_out_of_range || count > kMostSyntheticCpus) {
      return true;
    }
    cpus *= std::max<uint64_t>(count, 1);
    if (cpus > kMostSyntheticCpus) {
      return true;
    }
  }
  return false;
}

StatusOr<MachineParts> LoadSynthetic(const std::string& description, OutsideCpuset outside_cpuset) {
  if (HasTooManyCpus(description)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read synthetic machine \"{}\": it has more than {} CPUs; describe a "
                  "smaller one",
                  Quoted(description), kMostSyntheticCpus);
  }
  QRM_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read synthetic machine \"{}\": hwloc does not understand it; write it "
                  "like \"package:2 [numa] core:4 pu:2\"",
                  Quoted(description));
  }
  return Load(topology, outside_cpuset, "synthetic machine \"" + Quoted(description) + "\"",
              "write it like \"package:2 [numa] core:4 pu:2\"");
}

StatusOr<MachineParts> LoadParts(const MachineSource& source) {
  switch (source.kind) {
    case MachineSource::Kind::kLive:
      return LoadLive(source.outside_cpuset);
    case MachineSource::Kind::kFsRoot:
      return LoadFsRoot(source.argument, source.outside_cpuset);
    case MachineSource::Kind::kXml:
      return LoadXmlFile(source.argument, source.outside_cpuset);
    case MachineSource::Kind::kSynthetic:
      return LoadSynthetic(source.argument, source.outside_cpuset);
    case MachineSource::Kind::kDescribed:
      break;  // has no parts of its own
  }
  return Errorf(StatusCode::kInternal, "cannot read the machine: unknown source {}; report this",
                static_cast<int>(source.kind));
}

}  // namespace

StatusOr<MachineSource> MachineSource::Parse(std::string_view text) {
  if (text == "live") {
    return MachineSource{};
  }
  struct Form {
    std::string_view prefix;
    Kind kind;
  };
  constexpr std::array<Form, 4> kForms = {{{"fsroot:", Kind::kFsRoot},
                                           {"xml:", Kind::kXml},
                                           {"synthetic:", Kind::kSynthetic},
                                           {"described:", Kind::kDescribed}}};
  for (const Form& form : kForms) {
    if (text.substr(0, form.prefix.size()) == form.prefix && text.size() > form.prefix.size()) {
      return MachineSource{.kind = form.kind,
                           .argument = std::string(text.substr(form.prefix.size()))};
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read machine source \"{}\": it has none of the known forms; write live, "
                "fsroot:DIR, xml:FILE, synthetic:DESCRIPTION or described:TEXT",
                Quoted(text));
}

StatusOr<Machine> Discover(const MachineSource& source) {
  if (source.kind == MachineSource::Kind::kDescribed) {
    return ParseMachineText(source.argument);
  }
  QRM_ASSIGN_OR_RETURN(MachineParts parts, LoadParts(source));
  return Machine(std::move(parts));
}

}  // namespace qrm
