// The kernel's error distinguishes a stopped runtime from a missing socket and from missing rights.
#include "manager/runtime/socket_cure.h"

#include <cerrno>

namespace qrm::manager {

std::string SocketCure(RuntimeSocket socket, int error) {
  const bool nri = socket == RuntimeSocket::kNri;
  switch (error) {
    case 0:
      return "the runtime hangs: see its log, and restart it";
    case ENOENT:
    case ENOTDIR:
      return nri ? "if the runtime is running, enable NRI in its configuration, or set nri-socket "
                   "to its NRI socket"
                 : "start the runtime, or set cri-socket to the socket that kubelet uses";
    case ECONNREFUSED:
      return nri ? "start the runtime; if it is running, enable NRI in its configuration"
                 : "start the runtime";
    case EACCES:
    case EPERM:
      return "run qrmd as root";
    case EMFILE:
    case ENFILE:
      return "raise qrmd's limit of open files (LimitNOFILE of its unit)";
    default:
      return nri ? "correct nri-socket" : "correct cri-socket";
  }
}

}  // namespace qrm::manager
