// Prints pods as a table or as sheets.
#include "tools/qrmctl/pod_tables.h"

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/resource.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

using StringByString = google::protobuf::Map<std::string, std::string>;

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
/// and classes: "blockio:slow".
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
  const std::map<std::string, std::string> classes(container.classes().begin(),
                                                   container.classes().end());
  for (const auto& [type, name] : classes) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", type, name.empty() ? "none" : name);
  }
  return text;
}

void PrintTable(const v1::ListPodsResponse& response, std::ostream& out) {
  Table table({"NAMESPACE", "POD", "ROLE", "CONTAINER", "TYPE", "CPUS", "MEMS", "OTHER"});
  for (const v1::Pod& pod : response.pods()) {
    for (const v1::Container& container : pod.containers()) {
      table.Add({pod.namespace_(), pod.name(), pod.role(), container.name(), container.type(),
                 ValueOf(container, kCpusetCpus), ValueOf(container, kCpusetMems),
                 OthersText(container)});
    }
  }
  if (table.empty()) {
    out << "No pod is admitted.\n";
    return;
  }
  table.Print(out);
}

std::string JoinMap(const StringByString& values) {
  const std::map<std::string, std::string> sorted(values.begin(), values.end());
  std::string text;
  for (const auto& [key, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

std::string RequestsText(const v1::Container& container) {
  const std::map<std::string, double> sorted(container.requests().begin(),
                                             container.requests().end());
  std::string text;
  for (const auto& [resource, amount] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", resource, AmountOf(resource, amount));
  }
  return text.empty() ? "none" : fmt::format("{} (from {})", text, container.request_source());
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
              allocation.value() + (allocation.exclusive() ? " (its own)" : ""));
  }
  AddIfAny("By node", ByNodeText(allocation), sheet);
  AddIfAny("Env", JoinMap(allocation.envs()), sheet);
  AddIfAny("Devices", DevicesText(allocation), sheet);
  AddIfAny("Mounts", MountsText(allocation), sheet);
  AddIfAny("Annotations", JoinMap(allocation.annotations()), sheet);
  sheet.Print(out, 6);
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
    about.Add("Type", container.type());
    AddIfAny("Runtime id", container.runtime_id(), about);
    about.Add("Requests", RequestsText(container));
    AddIfAny("Classes", JoinMap(container.classes()), about);
    AddIfAny("Applied", JoinMap(container.applied()), about);
    about.Print(out, 4);
    for (const v1::Allocation& allocation : container.allocations()) {
      PrintAllocation(allocation, out);
    }
  }
}

void PrintSheets(const v1::ListPodsResponse& response, std::ostream& out) {
  for (int i = 0; i < response.pods_size(); ++i) {
    out << (i == 0 ? "" : "\n");
    PrintPod(response.pods(i), out);
  }
}

}  // namespace

void PrintPods(const v1::ListPodsResponse& pods, PodDetail detail, OutputFormat format,
               std::ostream& out) {
  if (format != OutputFormat::kTable) {
    Print(ToDocument(pods), format, out);
  } else if (detail == PodDetail::kRows) {
    PrintTable(pods, out);
  } else {
    PrintSheets(pods, out);
  }
}

}  // namespace qrm::manager::cli
