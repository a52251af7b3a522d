// Runs rsvg-convert between two files in memory, so that neither side can wait for the other.
#include "tools/qrmctl/png.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/errorf.h"

namespace qrm::manager::cli {
namespace {

constexpr char kProgram[] = "rsvg-convert";

Status SystemError(const std::string& what) {
  return Errorf(StatusCode::kInternal, "cannot draw the picture: {}: {}", what,
                std::strerror(errno));
}

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  /// Leaves the place to read from at the beginning.
  Status Write(const std::string& bytes) const {
    if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        lseek(fd_, 0, SEEK_SET) != 0) {
      return SystemError("a file in memory");
    }
    return OkStatus();
  }
  StatusOr<std::string> Read() const {
    const off_t size = lseek(fd_, 0, SEEK_END);
    std::string bytes(size < 0 ? 0 : static_cast<std::size_t>(size), '\0');
    if (size < 0 || pread(fd_, bytes.data(), bytes.size(), 0) != size) {
      return SystemError("a file in memory");
    }
    return bytes;
  }

 private:
  const int fd_;
};

/// Its exit status, as from waitpid.
StatusOr<int> Run(const MemoryFile& input, const MemoryFile& output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.fd(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output.fd(), STDOUT_FILENO);
  std::string program = kProgram;
  std::string format = "--format=png";
  const std::array<char*, 3> arguments = {program.data(), format.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, kProgram, &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot draw the picture: {}: {}; install it (Debian: librsvg2-bin), or use "
                  "-o svg",
                  kProgram, std::strerror(error));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      return SystemError("waitpid");
    }
  }
  return status;
}

}  // namespace

StatusOr<std::string> PngOf(const std::string& svg) {
  const MemoryFile input("svg");
  const MemoryFile output("png");
  QRM_RETURN_IF_ERROR(input.Write(svg));
  QRM_ASSIGN_OR_RETURN(const int status, Run(input, output));
  QRM_ASSIGN_OR_RETURN(std::string png, output.Read());
  if (status != 0 || png.empty()) {
    return Errorf(StatusCode::kInternal, "cannot draw the picture: {} ended with {}; use -o svg",
                  kProgram, WIFEXITED(status) ? WEXITSTATUS(status) : status);
  }
  return png;
}

}  // namespace qrm::manager::cli
