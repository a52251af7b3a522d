// A small file system for one test, to be full or read-only.
#pragma once

#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace qrm::test {

/// A tmpfs on a directory, where the test may mount one: that needs root.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path, const char* size = "512k") : path_(std::move(path)) {
    const std::string options = std::string("mode=0700,size=") + size;
    mounted_ = ::mount("qrm-test", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) {
      ::umount2(path_.c_str(), MNT_DETACH);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }

  /// Leaves no free page.
  void Fill() const {
    const int fd = ::open(Ballast().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    ::close(fd);
  }
  void Clear() const { ::unlink(Ballast().c_str()); }

  /// False while a process has a file open to write.
  bool MakeReadOnly() const { return Remount(MS_RDONLY); }
  bool MakeWritable() const { return Remount(0); }

 private:
  bool Remount(unsigned long flags) const {
    return ::mount(nullptr, path_.c_str(), nullptr, MS_REMOUNT | flags, nullptr) == 0;
  }
  std::string Ballast() const { return path_ + "/ballast"; }

  std::string path_;
  bool mounted_ = false;
};

}  // namespace qrm::test
