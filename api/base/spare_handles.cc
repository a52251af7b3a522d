// Copies of one open file are the cheapest handles.
#include "api/base/spare_handles.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace qrm {

bool SpareHandles::Release() {
  bool any = false;
  for (int& handle : handles_) {
    if (handle != kNone) {
      ::close(std::exchange(handle, kNone));
      any = true;
    }
  }
  return any;
}

bool SpareHandles::Refill() {
  for (int& handle : handles_) {
    handle = handle == kNone ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : handle;
  }
  return std::find(handles_.begin(), handles_.end(), kNone) == handles_.end();
}

}  // namespace qrm
