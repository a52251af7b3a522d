// Prints pods as a table or as sheets.
#include "tools/qrmctl/pod_tables.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

using StringByString = google::protobuf::Map<std::string, std::string>;

/// The CPUs of a pool that the container uses beside its own: " +0-1", or nothing.
std::string SharesText(const v1::Container& container) {
  for (const v1::Allocation& allocation : container.allocations()) {
    if (!allocation.shares().empty()) {
      return " +" + allocation.shares();
    }
  }
  return "";
}

/// The value of the container's first allocation of `property`, "*" when the CPUs are its own.
std::string ValueOf(const v1::Container& container, std::string_view property) {
  for (const v1::Allocation& allocation : container.allocations()) {
    if (allocation.oci_property() == property) {
      return allocation.value() + (allocation.exclusive() ? "*" : "");
    }
  }
  return "";
}

/// "memory=2Gi,nic": what is held besides CPUs, with its amount where there is one,
/// what it runs without, "example.com/lane!", whether it waits for more, and classes:
/// "blockio:slow".
std::string OthersText(const v1::Container& container) {
  std::string text;
  for (const v1::Allocation& allocation : container.allocations()) {
    if (allocation.oci_property() == kCpusetCpus) {
      continue;
    }
    text += (text.empty() ? "" : ",") + allocation.resource_name();
    if (allocation.quantity() != 0) {
      text += "=" + AmountOf(allocation.resource_name(), allocation.quantity());
    }
  }
  for (const std::string& resource : container.runs_without()) {
    text += fmt::format("{}{}!", text.empty() ? "" : ",", resource);
  }
  if (!container.pending().empty()) {
    text += text.empty() ? "pending" : ",pending";
  }
  if (container.state() == "skipped" || container.state() == "unpinned" ||
      container.state() == "incomplete") {
    text += (text.empty() ? "" : ",") + container.state();
  }
  if (!container.unapplied().empty()) {
    text += text.empty() ? "unapplied" : ",unapplied";
  }
  const std::map<std::string, std::string> classes(container.classes().begin(),
                                                   container.classes().end());
  for (const auto& [type, name] : classes) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", type, name.empty() ? "none" : name);
  }
  return text;
}

/// How long the container has been so; empty when that is not known.
std::string AgeOf(const v1::Container& container) {
  constexpr double kMillis = 1000;
  if (container.since_unix_millis() == 0) {
    return "";
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return AgeText(
      std::max(0.0, static_cast<double>(now.count() - container.since_unix_millis()) / kMillis));
}

Status PrintTable(const v1::ListPodsResponse& response, const CommandLine& line,
                  std::ostream& out) {
  const bool wide = line.format().kind == OutputFormat::kWide;
  std::vector<std::string> headers = {"NAMESPACE", "POD",  "ROLE", "CONTAINER",
                                      "TYPE",      "CPUS", "MEMS", "OTHER"};
  if (wide) {
    headers.insert(headers.end(), {"AGE", "STATE", "WHY", "QOS", "UID", "RUNTIME ID"});
  }
  Table table(headers);
  for (const v1::Pod& pod : response.pods()) {
    for (const v1::Container& container : pod.containers()) {
      std::vector<std::string> row = {pod.namespace_(),
                                      pod.name(),
                                      pod.role(),
                                      container.name(),
                                      container.type(),
                                      ValueOf(container, kCpusetCpus) + SharesText(container),
                                      ValueOf(container, kCpusetMems),
                                      OthersText(container)};
      if (wide) {
        row.insert(row.end(), {AgeOf(container), container.state(), container.why(),
                               pod.qos_class(), pod.uid(), container.runtime_id()});
      }
      table.Add(std::move(row));
    }
  }
  return table.PrintSorted(line.listing().sort_by, "No pod is admitted.\n", out);
}

Status PrintReasons(const v1::ListPodsResponse& response, const CommandLine& line,
                    std::ostream& out) {
  Table table({"NAMESPACE", "POD", "CONTAINER", "STATE", "AGE", "WHY"});
  for (const v1::Pod& pod : response.pods()) {
    for (const v1::Container& container : pod.containers()) {
      table.Add({pod.namespace_(), pod.name(), container.name(), container.state(),
                 AgeOf(container), container.why()});
    }
  }
  return table.PrintSorted(line.listing().sort_by,
                           "All running containers have their allocations.\n", out);
}

std::string JoinMap(const StringByString& values) {
  const std::map<std::string, std::string> sorted(values.begin(), values.end());
  std::string text;
  for (const auto& [key, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

/// "cpu=2 memory=2Gi (from estimate) example.com/lane=1 (from configuration)".
std::string RequestsText(const v1::Container& container) {
  const std::map<std::string, double> sorted(container.requests().begin(),
                                             container.requests().end());
  std::map<std::string, std::string> by_source;
  for (const auto& [resource, amount] : sorted) {
    const auto other = container.request_sources().find(resource);
    std::string& text =
        by_source[other == container.request_sources().end() ? container.request_source()
                                                             : other->second];
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", resource, AmountOf(resource, amount));
  }
  std::string all;
  if (const auto first = by_source.extract(container.request_source()); !first.empty()) {
    all = fmt::format("{} (from {})", first.mapped(), first.key());
  }
  for (const auto& [source, text] : by_source) {
    all += fmt::format("{}{} (from {})", all.empty() ? "" : " ", text, source);
  }
  return all.empty() ? "none" : all;
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string ByNodeText(const v1::Allocation& allocation) {
  const std::map<uint64_t, uint64_t> sorted(allocation.amount_by_node().begin(),
                                            allocation.amount_by_node().end());
  std::string text;
  for (const auto& [node, amount] : sorted) {
    text += fmt::format("{}node {}: {}", text.empty() ? "" : ", ", node,
                        AmountOf(allocation.resource_name(), static_cast<double>(amount)));
  }
  return text;
}

/// "/dev/fpga0 (of /dev/fpga0, rw)": where the container finds each, and what it is.
std::string DevicesText(const v1::Allocation& allocation) {
  std::string text;
  for (const v1::Device& device : allocation.devices()) {
    text += fmt::format("{}{} (of {}, {})", text.empty() ? "" : ", ", device.container_path(),
                        device.host_path(), device.permissions());
  }
  return text;
}

std::string MountsText(const v1::Allocation& allocation) {
  std::string text;
  for (const v1::Mount& mount : allocation.mounts()) {
    text += fmt::format("{}{} (of {}, {})", text.empty() ? "" : ", ", mount.container_path(),
                        mount.host_path(), mount.read_only() ? "read-only" : "writable");
  }
  return text;
}

void AddIfAny(const std::string& name, const std::string& value, Sheet& sheet) {
  if (!value.empty()) {
    sheet.Add(name, value);
  }
}

void PrintAllocation(const v1::Allocation& allocation, std::ostream& out) {
  out << "    " << Escaped(allocation.resource_name()) << '\n';
  Sheet sheet;
  if (allocation.quantity() != 0) {
    sheet.Add("Amount", AmountOf(allocation.resource_name(), allocation.quantity()));
  }
  if (!allocation.oci_property().empty()) {
    sheet.Add(allocation.oci_property(),
              allocation.value() + (allocation.exclusive() ? " (exclusive)" : ""));
  }
  AddIfAny("Shares", allocation.shares(), sheet);
  AddIfAny("By node", ByNodeText(allocation), sheet);
  AddIfAny("Env", JoinMap(allocation.envs()), sheet);
  AddIfAny("Devices", DevicesText(allocation), sheet);
  AddIfAny("Mounts", MountsText(allocation), sheet);
  AddIfAny("Annotations", JoinMap(allocation.annotations()), sheet);
  sheet.Print(out, 6);
}

/// "skipped for 5m12s: namespace kube-system is in skip-namespaces"; nothing for an admitted one.
std::string StateText(const v1::Container& container) {
  if (container.state().empty() || container.state() == "admitted" ||
      container.state() == "pending") {
    return "";
  }
  const std::string age = AgeOf(container);
  return fmt::format("{}{}{}{}{}", container.state(), age.empty() ? "" : " for ", age,
                     container.why().empty() ? "" : ": ", container.why());
}

void PrintPod(const v1::Pod& pod, std::ostream& out) {
  Sheet sheet;
  sheet.Add("Name", pod.name());
  sheet.Add("Namespace", pod.namespace_());
  sheet.Add("UID", pod.uid());
  AddIfAny("Role", pod.role(), sheet);
  AddIfAny("Type", pod.type(), sheet);
  AddIfAny("QoS class", pod.qos_class(), sheet);
  sheet.Print(out);
  out << "Containers:\n";
  for (const v1::Container& container : pod.containers()) {
    out << "  " << Escaped(container.name()) << '\n';
    Sheet about;
    AddIfAny("State", StateText(container), about);
    AddIfAny("Type", container.type(), about);
    AddIfAny("Runtime id", container.runtime_id(), about);
    if (!container.type().empty()) {
      about.Add("Requests", RequestsText(container));
    }
    AddIfAny("Without", Joined(container.runs_without()), about);
    AddIfAny("Pending", container.pending(), about);
    AddIfAny("Unapplied", container.unapplied(), about);
    AddIfAny("Classes", JoinMap(container.classes()), about);
    AddIfAny("Applied", JoinMap(container.applied()), about);
    about.Print(out, 4);
    for (const v1::Allocation& allocation : container.allocations()) {
      PrintAllocation(allocation, out);
    }
  }
}

}  // namespace

void PrintSheets(const v1::ListPodsResponse& response, std::ostream& out) {
  for (int i = 0; i < response.pods_size(); ++i) {
    out << (i == 0 ? "" : "\n");
    PrintPod(response.pods(i), out);
  }
}

int ShowPods(const CommandLine& line, const StatusOr<v1::ListPodsResponse>& pods, PodDetail detail,
             std::ostream& out, std::ostream& err) {
  return Show(line, pods, out, err, [&](const v1::ListPodsResponse& shown) {
    if (detail == PodDetail::kSheets) {
      PrintSheets(shown, out);
      return OkStatus();
    }
    return detail == PodDetail::kRows ? PrintTable(shown, line, out)
                                      : PrintReasons(shown, line, out);
  });
}

}  // namespace qrm::manager::cli
