// Draws boxes from the inside to the outside: each knows its size when it is drawn.
#include "tools/qrmctl/topology_picture.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/id_set.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

// In pixels.
constexpr int kCpuWidth = 30;
constexpr int kCpuHeight = 22;
constexpr int kLine = 18;  // of text
constexpr int kBoxGap = 8;
constexpr int kLeastNodeWidth = 330;
constexpr int kCoresInARow = 8;

constexpr const char* kColours[] = {"#8dd3c7", "#fdb462", "#bebada", "#fb8072", "#b3de69",
                                    "#fccde5", "#80b1d3", "#ffed6f", "#bc80bd", "#ccebc5"};
constexpr char kShared[] = "#d9d9d9";
constexpr char kFree[] = "#ffffff";

struct Box {
  int width = 0;
  int height = 0;
  std::string inside;  ///< drawn with its left upper corner at 0, 0
};

/// Names come from pods.
std::string Safe(const std::string& text) {
  std::string safe;
  for (const char c : Escaped(text)) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string Text(int x, int y, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, y, Safe(text));
}

std::string Rect(const Box& box, const std::string& fill) {
  return fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#555\"/>\n", box.width,
                     box.height, fill);
}

std::string At(int x, int y, const std::string& inside) {
  return fmt::format("<g transform=\"translate({},{})\">\n{}</g>\n", x, y, inside);
}

/// Who has which CPU.
class Owners {
 public:
  explicit Owners(const Document& topology) {
    for (const Document& use : topology.value("use", Document::array())) {
      shared_ = shared_ | Cpus(use.value("shared_cpus", ""));
      for (const Document& container : use.value("containers", Document::array())) {
        if (container.value("exclusive", false)) {
          const std::string name = container.value("container", "");
          colours_.emplace(name, kColours[colours_.size() % std::size(kColours)]);
          for (const int cpu : Cpus(container.value("cpus", ""))) {
            owners_[cpu] = name;
          }
        }
      }
    }
  }

  std::string OwnerOf(int cpu) const {
    const auto found = owners_.find(cpu);
    return found != owners_.end() ? found->second : shared_.Has(cpu) ? "shared" : "free";
  }
  std::string ColourOf(int cpu) const {
    const auto found = owners_.find(cpu);
    return found != owners_.end() ? ColourOf(found->second) : shared_.Has(cpu) ? kShared : kFree;
  }
  /// Of a container; that of shared CPUs for one that has none of its own.
  std::string ColourOf(const std::string& container) const {
    const auto found = colours_.find(container);
    return found == colours_.end() ? kShared : found->second;
  }

 private:
  static CpuSet Cpus(const std::string& text) { return CpuSet::Parse(text).value_or(CpuSet()); }

  CpuSet shared_;
  std::map<int, std::string> owners_;
  std::map<std::string, std::string> colours_;
};

Box CoreBox(int core, const std::vector<int>& cpus, const Owners& owners) {
  Box box{.width = static_cast<int>(cpus.size()) * kCpuWidth + kBoxGap,
          .height = kCpuHeight + kBoxGap,
          .inside = {}};
  box.inside = Rect(box, "#eee");
  int x = kBoxGap / 2;
  for (const int cpu : cpus) {
    const Box cell{.width = kCpuWidth, .height = kCpuHeight, .inside = {}};
    box.inside += At(
        x, kBoxGap / 2,
        fmt::format("<title>CPU {}, core {}: {}</title>\n", cpu, core, Safe(owners.OwnerOf(cpu))) +
            Rect(cell, owners.ColourOf(cpu)) +
            Text(kBoxGap / 2, kCpuHeight - kBoxGap + 1, std::to_string(cpu)));
    x += kCpuWidth;
  }
  return box;
}

/// The cores of a node, eight in a row.
Box CoresBox(const Document& topology, int node, const Owners& owners) {
  std::map<int, std::vector<int>> cores;
  for (const Document& cpu : topology.value("cpus", Document::array())) {
    if (cpu.value("node", -1) == node) {
      cores[cpu.value("core", 0)].push_back(cpu.value("id", 0));
    }
  }
  Box all;
  int x = 0;
  int y = 0;
  int drawn = 0;
  for (const auto& [core, cpus] : cores) {
    const Box box = CoreBox(core, cpus, owners);
    all.inside += At(x, y, box.inside);
    x += box.width;
    all.width = std::max(all.width, x);
    all.height = y + box.height;
    if (++drawn % kCoresInARow == 0) {
      x = 0;
      y += box.height;
    }
  }
  return all;
}

/// A line for each container that uses the node.
Box UsersBox(const Document& topology, int node, const Owners& owners) {
  Box box{.width = kLeastNodeWidth, .height = 0, .inside = {}};
  for (const Document& use : topology.value("use", Document::array())) {
    if (use.value("node", -1) != node) {
      continue;
    }
    for (const Document& container : use.value("containers", Document::array())) {
      const std::string name = container.value("container", "");
      const uint64_t memory = container.value("memory_bytes", uint64_t{0});
      std::string text = fmt::format("{}: CPUs {}", name, container.value("cpus", ""));
      text += memory == 0 ? "" : ", memory " + BytesText(memory);
      box.inside +=
          At(0, box.height + 3,
             Rect({.width = kLine - 6, .height = kLine - 6, .inside = {}}, owners.ColourOf(name)));
      box.height += kLine;
      box.inside += Text(kLine, box.height - 4, text);
      box.width = std::max(box.width, kLine + static_cast<int>(text.size()) * 7);
    }
  }
  return box;
}

/// `parts` below each other under `title`, within a frame.
Box Framed(const std::string& title, const std::string& fill, const std::vector<Box>& parts) {
  Box frame{.width = kLeastNodeWidth, .height = kLine + kBoxGap, .inside = {}};
  std::string inside = Text(kBoxGap, kLine, title);
  for (const Box& part : parts) {
    inside += At(kBoxGap, frame.height, part.inside);
    frame.width = std::max(frame.width, part.width + 2 * kBoxGap);
    frame.height += part.height + kBoxGap;
  }
  frame.inside = Rect(frame, fill) + inside;
  return frame;
}

}  // namespace

std::string TopologySvg(const Document& topology) {
  const Owners owners(topology);
  std::map<int, std::vector<Box>> packages;
  for (const Document& node : topology.value("nodes", Document::array())) {
    const int id = node.value("id", 0);
    packages[node.value("package", 0)].push_back(
        Framed(fmt::format("node {}: {}", id, BytesText(node.value("memory_bytes", uint64_t{0}))),
               "#fafafa", {CoresBox(topology, id, owners), UsersBox(topology, id, owners)}));
  }
  Box all{.width = kBoxGap, .height = 0, .inside = {}};
  for (const auto& [id, nodes] : packages) {
    const Box package = Framed(fmt::format("package {}", id), "#e3ecf5", nodes);
    all.inside += At(all.width, kBoxGap, package.inside);
    all.width += package.width + kBoxGap;
    all.height = std::max(all.height, package.height + 2 * kBoxGap);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"monospace\" font-size=\"12\">\n{2}</svg>\n",
      all.width, all.height, all.inside);
}

}  // namespace qrm::manager::cli
