// Uses the thread attributes of the class type cpu-scheduling.
#include "plugins/cci/scheduling.h"

#include <algorithm>

#include "api/base/errorf.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/thread_attributes.h"

namespace qrm::cci {
namespace {

constexpr char kType[] = "cpu-scheduling";

const kernel::KnobType& Type() {
  static const kernel::KnobType type =
      *std::find_if(kernel::KnobTypes().begin(), kernel::KnobTypes().end(),
                    [](const kernel::KnobType& one) { return one.name == kType; });
  return type;
}

kernel::ThreadAttribute ThreadAttributeOf(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kSchedule:
      return kernel::ThreadAttribute::kPolicy;
    case AttributeKind::kNice:
      return kernel::ThreadAttribute::kNice;
    default:
      return kernel::ThreadAttribute::kNone;
  }
}

Status Check(const Attribute& attribute, const kernel::KnobMachine& machine) {
  const kernel::ThreadAttribute of = ThreadAttributeOf(attribute);
  if (of == kernel::ThreadAttribute::kNone) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not supported by this driver; remove it, or write {}? to run without",
                  attribute.text, attribute.text);
  }
  return Annotate(CheckValues(Type(), {{kernel::NameOf(of), attribute.word}}, machine),
                  attribute.text + " is not possible");
}

}  // namespace

kernel::KnobMachine FindScheduling(const std::string& cgroup_root) {
  return kernel::FindKnobs(Type().controller, cgroup_root);
}

StatusOr<std::vector<Attribute>> ChooseScheduling(const std::vector<Attribute>& asked,
                                                  const kernel::KnobMachine& machine,
                                                  std::vector<sdk::UnmetWish>& unmet) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : asked) {
    Status good = Check(attribute, machine);
    if (good.ok()) {
      kept.push_back(attribute);
      kept.back().is_wish = false;
    } else if (attribute.is_wish) {
      unmet.push_back({.token = attribute.text + "?", .reason = MessageOf(good)});
    } else {
      return good;
    }
  }
  return kept;
}

Status GiveScheduling(const std::vector<Attribute>& attributes, const std::string& cgroup,
                      const kernel::KnobMachine& machine) {
  kernel::ThreadValues values;
  for (const Attribute& attribute : attributes) {
    values[ThreadAttributeOf(attribute)] = attribute.word;
  }
  return SetAllThreads(machine.threads_root + cgroup, values);
}

}  // namespace qrm::cci
