// Runs the plugin with a fake manager: it registers, allocates, and keeps its state.
//   lane_plugin_test PATH_OF_PLUGIN
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <plugins/sdk/fake_manager.h>

namespace {

constexpr char kResource[] = "example.com/lane";

/// Ends the test when `holds` is false.
void Expect(bool holds, const std::string& what) {
  if (!holds) {
    std::cerr << "failed: " << what << '\n';
    std::exit(EXIT_FAILURE);
  }
}

/// The plugin as a process, killed with the object.
class PluginProcess {
 public:
  PluginProcess(const char* program, const std::string& plugins_dir, const std::string& state_dir)
      : pid_(fork()) {
    if (pid_ == 0) {
      execl(program, program, "--plugins-registry-dir", plugins_dir.c_str(), "--state-dir",
            state_dir.c_str(), nullptr);
      _exit(127);
    }
  }
  ~PluginProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

 private:
  pid_t pid_;
};

qrm::ContainerRequest RequestOf(const std::string& pod) {
  return {.key = {pod, "main"}, .resource = kResource, .requests = {{kResource, 1}}};
}

void RunIn(const std::string& directory, const char* program) {
  auto manager = qrm::sdk::FakeManager::Start(directory);
  Expect(manager.ok(), "the manager starts");
  const std::string state = directory + "/state";
  const auto lane_of = [&](const std::string& pod) {
    auto allocation = (*manager)->Admit(RequestOf(pod));
    return allocation.ok() ? allocation->envs["LANE"] : qrm::MessageOf(allocation.status());
  };
  {
    const PluginProcess plugin(program, (*manager)->plugins_dir(), state);
    Expect((*manager)->WaitForPlugin(kResource).ok(), "the plugin registers");
    Expect(lane_of("one") == "0", "the first pod gets lane 0");
    Expect(lane_of("two") == "1", "the second pod gets lane 1");
  }
  const PluginProcess plugin(program, (*manager)->plugins_dir(), state);
  Expect((*manager)->WaitForPlugin(kResource, 2).ok(), "the plugin registers after it was killed");
  Expect(lane_of("one") == "0", "a pod keeps its lane");
  Expect(lane_of("three") == "2", "a lane is not given twice");
  Expect((*manager)->RemovePod(kResource, "one").ok(), "a pod is removed");
  Expect(lane_of("four") == "0", "a lane comes back");
  Expect(lane_of("five") == "3", "the last lane is given");
  Expect(!(*manager)->Admit(RequestOf("six")).ok(), "no lane is left for the sixth pod");
}

}  // namespace

int main(int argc, char** argv) {
  Expect(argc == 2, "usage: lane_plugin_test PATH_OF_PLUGIN");
  std::string directory = "/tmp/lane_plugin_test.XXXXXX";
  Expect(mkdtemp(directory.data()) != nullptr, "a directory in /tmp");
  RunIn(directory, argv[1]);
  std::filesystem::remove_all(directory);
  std::cout << "the plugin registers, allocates and keeps its state\n";
}
