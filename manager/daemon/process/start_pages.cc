// Walks through the program and its libraries, as the loader lists them.
#include "manager/daemon/process/start_pages.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace qrm::manager {
namespace {

bool IsTraced() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "TracerPid:") {
      int tracer = 0;
      return !(file >> tracer) || tracer != 0;
    }
  }
  return true;
}

/// The loader tells addresses as numbers.
void* At(std::uintptr_t address) {
  return std::bit_cast<void*>(address);
}

/// Whether the loader wrote into code, so that the file has it otherwise.
bool HasRelocatedCode(const dl_phdr_info& object) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) {
      continue;
    }
    const auto* entry = static_cast<const ElfW(Dyn)*>(At(object.dlpi_addr + segment.p_vaddr));
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL ||
          (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0)) {
        return true;
      }
    }
  }
  return false;
}

/// Of the segments that nobody writes, which are files' to the byte.
int GiveBackPages(dl_phdr_info* object, std::size_t /*size*/, void* /*nothing*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const bool is_as_in_file = !HasRelocatedCode(*object);
  for (std::size_t i = 0; is_as_in_file && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0) {
      const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
      const std::uintptr_t end = begin + segment.p_memsz;
      const std::uintptr_t first = begin / page * page;
      // Fails for what is locked, which is to stay.
      ::madvise(At(first), end - first, MADV_DONTNEED);
    }
  }
  return 0;
}

}  // namespace

void GiveBackStartPages() {
  if (!IsTraced()) {
    ::dl_iterate_phdr(GiveBackPages, nullptr);
  }
}

}  // namespace qrm::manager
