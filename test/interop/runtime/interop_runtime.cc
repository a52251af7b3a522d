// A node without containers for tests in other languages: NRI and CRI sockets in a directory, and
// pods by command. interop_runtime DIRECTORY reads one JSON command a line from standard input and
// writes one JSON answer a line to standard output, until its input ends.
//
//   {"command": "run", "pod": {"name": ..., "uid": ..., "namespace": ..., "labels": {...},
//                              "annotations": {...},
//                              "containers": [{"name": ..., "milli_cpus": ..., "memory_bytes":
//                              ...}]}}
//       -> {"created_us": [time that each CreateContainer took]}
//   {"command": "run-unseen", "pod": ...} -> {}; as while qrmd is not running, with one container
//   {"command": "resize", "pod": ...} -> {}; its first container, in place
//   {"command": "remove", "pod": NAME}  -> {}
//   {"command": "options", "pod": NAME} -> current values of its first container
//
// Any of them may answer {"error": SENTENCE}.
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "test/e2e/simulated_runtime.h"

namespace qrm::test {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ContainerSpec ContainerOf(const json& document) {
  return {.name = document.at("name"),
          .milli_cpus = document.at("milli_cpus"),
          .memory_bytes = document.at("memory_bytes"),
          .cpu_limit = true};
}

StringMap WordsOf(const json& document, const char* key) {
  return document.contains(key) ? document.at(key).get<StringMap>() : StringMap();
}

PodSpec PodOf(const json& document) {
  const std::string name = document.at("name");
  return {.name = name,
          .uid = document.value("uid", "uid-" + name),
          .pod_namespace = document.at("namespace"),
          .labels = WordsOf(document, "labels"),
          .annotations = WordsOf(document, "annotations"),
          .container = ContainerOf(document.at("containers").at(0))};
}

StatusOr<ordered_json> RunPod(SimulatedRuntime& runtime, const json& document) {
  std::vector<int64_t> created_us;
  const auto note = [&] {
    created_us.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(runtime.last_creation()).count());
  };
  const PodSpec pod = PodOf(document);
  QRM_RETURN_IF_ERROR(runtime.RunPod(pod));
  note();
  for (std::size_t i = 1; i < document.at("containers").size(); ++i) {
    QRM_RETURN_IF_ERROR(
        runtime.AddContainer(pod.name, ContainerOf(document.at("containers").at(i))));
    note();
  }
  return ordered_json{{"created_us", created_us}};
}

StatusOr<ordered_json> Obey(SimulatedRuntime& runtime, const json& order) {
  const std::string command = order.at("command");
  if (command == "run") {
    return RunPod(runtime, order.at("pod"));
  }
  if (command == "run-unseen") {
    runtime.RunPodUnseen(PodOf(order.at("pod")));
    return ordered_json::object();
  }
  if (command == "resize") {
    const PodSpec pod = PodOf(order.at("pod"));
    QRM_RETURN_IF_ERROR(runtime.Resize(pod.name, pod.container));
    return ordered_json::object();
  }
  if (command == "remove") {
    QRM_RETURN_IF_ERROR(runtime.RemovePod(order.at("pod")));
    return ordered_json::object();
  }
  if (command == "finish") {
    QRM_RETURN_IF_ERROR(runtime.FinishPod(order.at("pod")));
    return ordered_json::object();
  }
  if (command == "options") {
    return runtime.RunOptions(order.at("pod"));
  }
  return Errorf(
      StatusCode::kInvalidArgument,
      "cannot obey {}: no such command; use run, run-unseen, resize, remove, finish or options",
      command);
}

/// The library throws for orders that are not of the form above.
StatusOr<ordered_json> TryToObey(SimulatedRuntime& runtime, const std::string& line) {
  try {
    return Obey(runtime, json::parse(line));
  } catch (const std::exception& error) {
    return Errorf(StatusCode::kInvalidArgument, "cannot obey {}: {}", line, error.what());
  }
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "interop_runtime: no directory given; try: interop_runtime /tmp/node\n";
    return 2;
  }
  qrm::test::SimulatedRuntime runtime(argv[1]);
  std::cout << "{}\n" << std::flush;  // the sockets are there
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = qrm::test::TryToObey(runtime, line);
    std::cout << (answer.ok() ? *answer
                              : nlohmann::ordered_json{{"error", qrm::MessageOf(answer.status())}})
              << '\n'
              << std::flush;
  }
  return 0;
}
