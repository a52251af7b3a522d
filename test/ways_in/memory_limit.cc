// Makes the cgroup at the root of the memory controller.
#include "test/ways_in/memory_limit.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include <unistd.h>

namespace qrm::test {

MemoryLimit::MemoryLimit(std::size_t bytes) {
  const std::string name = "/qrm-ways-in-" + std::to_string(::getpid());
  for (const auto& [root, file] :
       {std::pair<std::string, std::string>{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
        {"/sys/fs/cgroup", "memory.max"}}) {
    const std::string directory = root + name;
    std::error_code error;
    if (!std::filesystem::create_directory(directory, error) || error) {
      continue;
    }
    std::ofstream limit(std::filesystem::path(directory) / file);
    if (limit << bytes && limit.flush()) {
      directory_ = directory;
      return;
    }
    ::rmdir(directory.c_str());
  }
  std::cout << "no cgroup: only the growth of memory is judged\n";
}

MemoryLimit::~MemoryLimit() {
  ::rmdir(directory_.c_str());
}

void MemoryLimit::Add(pid_t process) const {
  if (!directory_.empty()) {
    std::ofstream(directory_ + "/cgroup.procs") << process;
  }
}

}  // namespace qrm::test
