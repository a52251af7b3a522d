// Catches the signals on the I/O loop.
#include "manager/daemon/stop_signals.h"

#include <csignal>

#include "api/base/log.h"

namespace qrm::manager {

StopSignals::StopSignals(boost::asio::io_context& io) : signals_(io, SIGTERM, SIGINT) {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) {
      log::Info("stopping", {{"signal", signal}});
      caught_.set_value();
    }
  });
}

}  // namespace qrm::manager
