// Converts types and classes to messages.
#include "manager/control/classes_answer.h"

#include "api/proto/qrm/v1/classes.pb.h"

namespace qrm::manager {
namespace {

void Fill(const sdk::ClassInfo& info, const ClassTypeStatus& type, v1::Class& message) {
  message.set_name(info.name);
  message.set_capacity(type.offered.CapacityOf(info));
  const auto users = type.users.find(info.name);
  message.set_used(users == type.users.end() ? 0 : users->second);
  const auto rule = type.offered.rules->classes.find(info.name);
  if (rule != type.offered.rules->classes.end()) {
    *message.mutable_namespaces() = {rule->second.namespaces.begin(),
                                     rule->second.namespaces.end()};
  }
  message.set_definition(info.definition);
  message.set_problem(info.problem);
}

}  // namespace

v1::ListClassesResponse ClassesAnswer(const std::vector<ClassTypeStatus>& types) {
  v1::ListClassesResponse response;
  for (const ClassTypeStatus& status : types) {
    const sdk::ClassType& type = status.offered.type;
    v1::ClassType& message = *response.add_types();
    message.set_name(type.name);
    message.set_level(type.level == sdk::ClassLevel::kPod ? "pod" : "container");
    message.set_mutable_(type.is_mutable);
    message.set_default_class(status.offered.rules->default_class);
    message.set_problem(type.problem);
    message.set_repairs(status.work.repairs + type.repairs);
    *message.mutable_problems() = {status.work.problems.begin(), status.work.problems.end()};
    for (const sdk::ClassInfo& info : type.classes) {
      Fill(info, status, *message.add_classes());
    }
  }
  return response;
}

}  // namespace qrm::manager
