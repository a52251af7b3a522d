// Uses the thread attributes of the class type cpu-scheduling.
#include "plugins/cci/scheduling.h"

#include <algorithm>

#include "api/base/errorf.h"
#include "plugins/knobs/knob.h"
#include "plugins/knobs/thread_attributes.h"

namespace qrm::cci {
namespace {

constexpr char kType[] = "cpu-scheduling";

const knobs::KnobType& Type() {
  static const knobs::KnobType type =
      *std::find_if(knobs::KnobTypes().begin(), knobs::KnobTypes().end(),
                    [](const knobs::KnobType& one) { return one.name == kType; });
  return type;
}

knobs::ThreadAttribute ThreadAttributeOf(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kSchedule:
      return knobs::ThreadAttribute::kPolicy;
    case AttributeKind::kNice:
      return knobs::ThreadAttribute::kNice;
    default:
      return knobs::ThreadAttribute::kNone;
  }
}

Status Check(const Attribute& attribute, const knobs::KnobMachine& machine) {
  const knobs::ThreadAttribute of = ThreadAttributeOf(attribute);
  if (of == knobs::ThreadAttribute::kNone) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not supported by this driver; remove it, or write {}? to run without",
                  attribute.text, attribute.text);
  }
  return Annotate(CheckValues(Type(), {{knobs::NameOf(of), attribute.word}}, machine),
                  attribute.text + " is not possible");
}

}  // namespace

knobs::KnobMachine FindScheduling(const std::string& cgroup_root) {
  return knobs::FindKnobs(Type(), cgroup_root);
}

StatusOr<std::vector<Attribute>> ChooseScheduling(const std::vector<Attribute>& asked,
                                                  const knobs::KnobMachine& machine,
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
                      const knobs::KnobMachine& machine) {
  knobs::ThreadValues values;
  for (const Attribute& attribute : attributes) {
    values[ThreadAttributeOf(attribute)] = attribute.word;
  }
  return SetAllThreads(machine.threads_root + cgroup, values);
}

}  // namespace qrm::cci
