// qrmctl classes, qrmctl class set
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/proto/qrm/v1/classes.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

std::string TextOf(const v1::ClassType& type, const v1::Class& one) {
  if (!type.problem().empty() || !one.problem().empty()) {
    return "cannot be given: " + (one.problem().empty() ? type.problem() : one.problem());
  }
  return one.definition();
}

void PrintClasses(const v1::ListClassesResponse& response, std::ostream& out) {
  if (response.types().empty()) {
    out << "This node has no QoS-class resources: qos-classes is off, or class-types is empty.\n";
    return;
  }
  Table table(
      {"TYPE", "LEVEL", "MUTABLE", "CLASS", "USED", "CAPACITY", "NAMESPACES", "DEFINITION"});
  for (const v1::ClassType& type : response.types()) {
    if (type.classes().empty()) {
      table.Add({type.name(), type.level(), type.mutable_() ? "yes" : "no", "-", "-", "-", "-",
                 type.problem().empty() && type.retired() ? "not in class-types any more"
                                                          : type.problem()});
    }
    for (const v1::Class& one : type.classes()) {
      const bool is_default = one.name() == type.default_class();
      table.Add({type.name(), type.level(), type.mutable_() ? "yes" : "no",
                 one.name() + (is_default ? " (default)" : ""), std::to_string(one.used()),
                 one.capacity() == 0 ? "any" : std::to_string(one.capacity()),
                 fmt::format("{}", fmt::join(one.namespaces(), ",")), TextOf(type, one)});
    }
  }
  table.Print(out);
  for (const v1::ClassType& type : response.types()) {
    for (const std::string& problem : type.problems()) {
      out << "Problem: " << problem << '\n';
    }
  }
}

void PrintLeft(const v1::ListClassesResponse& response, std::ostream& out) {
  Table table({"TYPE", "LEFT"});
  bool is_empty = true;
  for (const v1::ClassType& type : response.types()) {
    for (const std::string& left : type.left()) {
      table.Add({type.name(), left});
      is_empty = false;
    }
  }
  if (is_empty) {
    out << "No container has values of a class that does not exist any more.\n";
    return;
  }
  table.Print(out);
}

}  // namespace

int RunClassSet(const Args& args, std::ostream& out, std::ostream& err) {
  std::string pod;
  std::vector<std::string> words;
  CommandLine line("class set",
                   "Changes the class of a running container or pod; an empty CLASS removes it.\n"
                   "Returns when the kernel has the class. The class survives restarts.",
                   "qrmctl class set web nginx blockio=slow");
  line.ControlSocket()
      .Required("POD", pod, "name, NAMESPACE/NAME or UID")
      .Several("[CONTAINER] TYPE=CLASS", words,
               "the container, unless pods have the type as a whole; and its class");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto equals = words.back().find('=');
  if (words.size() > 2 || equals == 0 || equals == std::string::npos) {
    return line.Misuse(
        fmt::format("\"{}\" is not of the form TYPE=CLASS, or not the last word", words.back()),
        err);
  }
  v1::SetClassRequest request;
  request.set_pod(pod);
  request.set_container(words.size() == 2 ? words[0] : "");
  request.set_type(words.back().substr(0, equals));
  request.set_class_(words.back().substr(equals + 1));
  const auto changed = ControlClient(line).Ask<v1::SetClassResponse>(request);
  if (!changed.ok()) {
    return line.Fail(changed.status(), err);
  }
  const auto shown = [](const std::string& name) { return name.empty() ? "none" : name; };
  out << fmt::format("{} class: {} -> {}\n", request.type(), shown(changed->former_class()),
                     shown(request.class_()));
  return kDone;
}

int RunClasses(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("classes",
                   "Lists the types of QoS-class resources of this node, their classes, and how\n"
                   "many containers or pods have each class.",
                   "qrmctl classes");
  bool left = false;
  line.Output().ControlSocket().Watch().Flag(
      "--left", left, "only values of classes that do not exist any more, and why they stay");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto answer = ControlClient(line).Ask<v1::ListClassesResponse>(v1::ListClassesRequest());
  return Show(line, answer, out, err, [&](const v1::ListClassesResponse& classes) {
    left ? PrintLeft(classes, out) : PrintClasses(classes, out);
  });
}

}  // namespace qrm::manager::cli
