// Catches the signals on the I/O loop.
#include "manager/daemon/process/stop_signals.h"

#include <csignal>
#include <utility>

#include "api/base/log.h"

namespace qrm::manager {

StopSignals::StopSignals(boost::asio::io_context& io)
    : signals_(io, SIGTERM, SIGINT), hangups_(io) {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) {
      log::Info("stopping", {{"signal", signal}});
      caught_.set_value();
    }
  });
}

void StopSignals::OnHangup(std::function<void()> on_hangup) {
  on_hangup_ = std::move(on_hangup);
  hangups_.add(SIGHUP);
  AwaitHangup();
}

void StopSignals::AwaitHangup() {
  hangups_.async_wait([this](const boost::system::error_code& error, int /*signal*/) {
    if (!error) {
      on_hangup_();
      AwaitHangup();
    }
  });
}

}  // namespace qrm::manager
