// Counts rows of test vectors and prints those that fail.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "api/hint.h"
#include "api/id_set.h"

namespace qrm::vectors {

using Json = nlohmann::json;

/// What a row's check returns: how the result differs from what the row expects, or "".
using Difference = std::string;

/// A row's difference, and how it was run.
struct PluginOutcome {
  Difference difference;
  bool through_plugin = true;  ///< false: by the functions that the plugin calls
};

class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}

  /// Checks every row of `file[section]`; a section that is absent has no rows. A row without an id
  /// is named by section and position; an unreadable row fails.
  void Section(const Json& file, const std::string& section,
               const std::function<Difference(const Json&)>& check);
  /// The same, and prints how many rows went through the plugin.
  void PluginSection(const Json& file, const std::string& section,
                     const std::function<PluginOutcome(const Json&)>& check,
                     const std::string& title = "");

  int passed() const { return passed_; }
  int failed() const { return failed_; }

 private:
  void Rows(const Json& rows, const std::string& section,
            const std::function<Difference(const Json&)>& check);

  std::ostream& out_;
  int passed_ = 0;
  int failed_ = 0;
};

/// The NUMA nodes that a row lists; none for null.
NumaMask MaskOf(const Json& nodes);

/// "" when `got` is `wanted`, else both.
Difference Compare(const std::string& got, const std::string& wanted);

/// Hints in an order that does not depend on who made them; "" for no preference and for none.
std::string HintsText(const HintList& hints);
/// The hints that a row lists.
HintList HintsOf(const Json& hints);

/// Sections of the three files.
void CheckTopology(const Json& file, Report& report);
void CheckCpu(const Json& file, Report& report);
void CheckMemory(const Json& file, Report& report);
/// The same through the service code of the cpu and the memory plugin.
void CheckCpuPlugin(const Json& file, Report& report);
void CheckMemoryPlugin(const Json& file, Report& report);

}  // namespace qrm::vectors
