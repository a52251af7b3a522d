// Attaches files to loop devices and writes to them with O_DIRECT.
#include "test/e2e/loop_disk.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::test {
namespace {

constexpr int kLoopMajor = 7;

Status NoDisk(const std::string& what) {
  return Errorf(StatusCode::kFailedPrecondition, "cannot {}: {}", what,
                std::generic_category().message(errno));
}

// Only async-signal-safe calls, since it runs after a fork. Every write's time goes into `pipe`.
[[noreturn]] void Write(const char* procs, const char* disk, std::size_t count, int pipe) {
  const int joined = ::open(procs, O_WRONLY);
  const int file = ::open(disk, O_WRONLY | O_DIRECT);
  void* block = nullptr;
  if (::write(joined, "0", 1) != 1 || file < 0 ||
      ::posix_memalign(&block, 4096, DiskWriter::kWriteBytes) != 0) {
    ::_exit(1);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<off_t>(i * DiskWriter::kWriteBytes);
    if (::pwrite(file, block, DiskWriter::kWriteBytes, at) !=
        static_cast<ssize_t>(DiskWriter::kWriteBytes)) {
      ::_exit(1);
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    if (::write(pipe, &took, sizeof(took)) != sizeof(took)) {
      ::_exit(1);
    }
  }
  ::_exit(0);
}

}  // namespace

StatusOr<std::unique_ptr<LoopDisk>> LoopDisk::Make(const std::string& file, std::size_t mebibytes) {
  std::ofstream(file).put('\0');
  std::filesystem::resize_file(file, mebibytes << 20);
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  const int number = control < 0 ? -1 : ::ioctl(control, LOOP_CTL_GET_FREE);
  if (control >= 0) {
    ::close(control);
  }
  if (number < 0) {
    return NoDisk("get a loop device");
  }
  const std::string path = fmt::format("/dev/loop{}", number);
  const auto id = gnu_dev_makedev(kLoopMajor, static_cast<unsigned>(number));
  ::mknod(path.c_str(), S_IFBLK | 0600, id);  // where udev does not run
  const int disk = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  loop_config config{};
  config.fd = static_cast<uint32_t>(backing);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  const int attached = ::ioctl(disk, LOOP_CONFIGURE, &config);
  if (backing >= 0) {
    ::close(backing);
  }
  if (attached != 0) {
    return NoDisk("attach " + file + " to " + path);
  }
  return std::unique_ptr<LoopDisk>(
      new LoopDisk(file, disk, path, fmt::format("{}:{}", kLoopMajor, number)));
}

LoopDisk::LoopDisk(std::string file, int disk, std::string path, std::string id)
    : file_(std::move(file)), disk_(disk), path_(std::move(path)), id_(std::move(id)) {}

LoopDisk::~LoopDisk() {
  ::close(disk_);
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

DiskWriter::DiskWriter(const std::string& directory, const std::string& disk,
                       std::size_t mebibytes) {
  const std::string procs = directory + "/cgroup.procs";
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    Write(procs.c_str(), disk.c_str(), (mebibytes << 20) / kWriteBytes, ends[1]);
  }
  ::close(ends[1]);
  done_ = ends[0];
}

DiskWriter::~DiskWriter() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (done_ >= 0) {
    ::close(done_);
  }
}

bool DiskWriter::ReadOne() {
  std::chrono::nanoseconds took{};
  if (::read(done_, &took, sizeof(took)) != sizeof(took)) {
    return false;
  }
  times_.push_back(took);
  return true;
}

bool DiskWriter::AwaitWrites(std::size_t count) {
  while (times_.size() < count && ReadOne()) {
  }
  return times_.size() >= count;
}

std::vector<std::chrono::nanoseconds> DiskWriter::Finish() {
  while (ReadOne()) {
  }
  return times_;
}

}  // namespace qrm::test
