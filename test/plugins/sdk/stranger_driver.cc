// Runs a compute driver that was built outside the tree, with a fake manager: it registers,
// decides, and keeps its grants when it is killed.
//   stranger_driver PATH_OF_DRIVER
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <plugins/sdk/fake_manager.h>

namespace {

const std::string kDriver = qrm::sdk::DriverResource("round-robin");

/// Ends the test when `holds` is false.
void Expect(bool holds, const std::string& what) {
  if (!holds) {
    std::cerr << "failed: " << what << '\n';
    std::exit(EXIT_FAILURE);
  }
}

/// The driver as a process, killed with the object.
class DriverProcess {
 public:
  DriverProcess(const char* program, const std::string& plugins_dir, const std::string& state_dir)
      : pid_(fork()) {
    if (pid_ == 0) {
      execl(program, program, "--plugins-registry-dir", plugins_dir.c_str(), "--state-dir",
            state_dir.c_str(), "--control-socket", "", "--variable", "MINE", nullptr);
      _exit(127);
    }
  }
  ~DriverProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  DriverProcess(const DriverProcess&) = delete;
  DriverProcess& operator=(const DriverProcess&) = delete;

 private:
  pid_t pid_;
};

void RunIn(const std::string& directory, const char* program) {
  auto manager = qrm::sdk::FakeManager::Start(directory);
  Expect(manager.ok(), "the manager starts");
  const auto admit = [&](const std::string& pod, const qrm::CpuSet& available) {
    return (*manager)->ComputeAdmit({.resource = kDriver,
                                     .key = {pod, "main"},
                                     .pod_namespace = "default",
                                     .pod_name = pod,
                                     .available = available,
                                     .milli_cpus = 2000});
  };
  {
    const DriverProcess driver(program, (*manager)->plugins_dir(), directory + "/state");
    Expect((*manager)->WaitForPlugin(kDriver).ok(), "the driver registers");
    const auto grant = admit("a", qrm::CpuSet::Range(1, 7));
    Expect(grant.ok(), "it admits: " + qrm::MessageOf(grant.status()));
    Expect(ToString(grant->Cpus()) == "1-2", "it gives CPUs " + ToString(grant->Cpus()));
    Expect(grant->envs.contains("MINE"), "its own flag names the variable");
    Expect((*manager)
               ->ComputeAdd({.resource = kDriver, .key = {"a", "main"}, .container_id = "c"})
               .ok(),
           "it takes a start");
  }
  const DriverProcess driver(program, (*manager)->plugins_dir(), directory + "/state");
  Expect((*manager)->WaitForPlugin(kDriver, 2).ok(), "it registers again");
  const auto again = admit("a", qrm::CpuSet::Range(3, 7));
  Expect(again.ok() && ToString(again->Cpus()) == "1-2", "it kept its grant through kill -9");
  Expect(!admit("b", {3}).ok(), "it rejects what it cannot give");
  Expect((*manager)->ComputeRemove({.resource = kDriver, .key = {"a", ""}}).ok(),
         "it takes a removal");
  const auto next = admit("a", qrm::CpuSet::Range(3, 7));
  Expect(next.ok() && ToString(next->Cpus()) == "3-4", "what was removed is decided again");
}

}  // namespace

int main(int argc, char** argv) {
  Expect(argc == 2, "usage: stranger_driver PATH_OF_DRIVER");
  std::string directory = (std::filesystem::temp_directory_path() / "driver.XXXXXX").string();
  Expect(mkdtemp(directory.data()) != nullptr, "a directory");
  RunIn(directory, argv[1]);
  std::filesystem::remove_all(directory);
  return EXIT_SUCCESS;
}
