// Starts and ends child processes.
#include "test/e2e/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

constexpr std::size_t kLastOutputBytes = 1500;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The system call of each thread of a process, and the kernel's function that it waits in.
std::string WaitsOf(pid_t pid) {
  std::string waits;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    const std::string path = thread.path().string();
    waits += fmt::format("{}: {} {}; ", thread.path().filename().string(),
                         ReadAll(path + "/syscall"), ReadAll(path + "/wchan"));
  }
  std::replace(waits.begin(), waits.end(), '\n', ' ');
  return waits;
}

/// In the child: becomes `command`, with both outputs in `output`.
[[noreturn]] void Become(const std::vector<std::string>& command, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

StatusOr<pid_t> Spawn(const std::vector<std::string>& command, int output) {
  if (::access(command[0].c_str(), X_OK) != 0) {
    return Errorf(StatusCode::kNotFound, "cannot run {}: {}; build it with scripts/build.sh",
                  command[0], std::strerror(errno));
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Errorf(StatusCode::kResourceExhausted, "cannot start {}: {}", command[0],
                  std::strerror(errno));
  }
  if (pid == 0) {
    Become(command, output);
  }
  return pid;
}

}  // namespace

StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& command,
                                                  const std::string& log_file) {
  const int output = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot write {}: {}", log_file,
                  std::strerror(errno));
  }
  const StatusOr<pid_t> pid = Spawn(command, output);
  ::close(output);
  if (!pid.ok()) {
    return pid.status();
  }
  return std::unique_ptr<Process>(
      new Process(*pid, command[0].substr(command[0].rfind('/') + 1), log_file));
}

Process::Process(pid_t pid, std::string name, std::string log_file)
    : pid_(pid), name_(std::move(name)), log_file_(std::move(log_file)) {}

Process::~Process() {
  Kill();
}

bool Process::Running() {
  if (pid_ > 0 && ::waitpid(pid_, &exit_status_, WNOHANG) != 0) {
    pid_ = -1;
  }
  return pid_ > 0;
}

void Process::Kill() {
  if (Running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &exit_status_, 0);
    pid_ = -1;
  }
}

Status Process::Terminate(std::chrono::milliseconds limit) {
  if (Running()) {
    ::kill(pid_, SIGTERM);
  }
  if (!Await([this] { return !Running(); }, limit)) {
    return Errorf(StatusCode::kDeadlineExceeded,
                  "cannot stop {}: it still runs after {} ms: {}\nits threads wait in: {}", name_,
                  limit.count(), LastOutput(), WaitsOf(pid_));
  }
  if (exit_status_ != 0) {
    return Errorf(StatusCode::kInternal, "{} ended with status {}: {}", name_, exit_status_,
                  LastOutput());
  }
  return OkStatus();
}

std::string Process::LastOutput() const {
  const std::string text = ReadAll(log_file_);
  return text.size() <= kLastOutputBytes ? text : text.substr(text.size() - kLastOutputBytes);
}

int NumberInLog(const std::string& log_file, std::string_view field) {
  std::ifstream log(log_file);
  int number = 0;
  for (std::string line; std::getline(log, line);) {
    if (const std::size_t at = line.find(field); at != std::string::npos) {
      const std::string_view rest = std::string_view(line).substr(at + field.size());
      number = ParseNumber<int>(rest.substr(0, rest.find(' '))).value_or(0);
    }
  }
  return number;
}

StatusOr<std::string> RunCommand(const std::vector<std::string>& command) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) {
    return Errorf(StatusCode::kResourceExhausted, "cannot make a temporary file: {}",
                  std::strerror(errno));
  }
  const StatusOr<pid_t> pid = Spawn(command, ::fileno(file));
  int status = 0;
  if (pid.ok()) {
    ::waitpid(*pid, &status, 0);
  }
  std::string output;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::pread(::fileno(file), buffer, sizeof(buffer),
                         static_cast<off_t>(output.size()))) > 0) {
    output.append(buffer, static_cast<std::size_t>(size));
  }
  std::fclose(file);
  if (!pid.ok()) {
    return pid.status();
  }
  if (status != 0) {
    return Errorf(StatusCode::kInternal, "{} failed: {}", command[0], output);
  }
  return output;
}

}  // namespace qrm::test
