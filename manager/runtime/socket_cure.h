// Names what to do about a socket of the runtime that cannot be used.
#pragma once

#include <string>

namespace qrm::manager {

enum class RuntimeSocket { kNri, kCri };

/// The cure for `socket`, on which connect(2) failed with `error`; 0: it connects, but the runtime
/// does not answer. A clause without a full stop.
std::string SocketCure(RuntimeSocket socket, int error);

}  // namespace qrm::manager
