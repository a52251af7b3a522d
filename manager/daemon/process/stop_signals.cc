// Catches the signals on the I/O loop.
#include "manager/daemon/process/stop_signals.h"

#include <csignal>
#include <future>
#include <utility>

#include <boost/asio/signal_set.hpp>

#include "api/base/log.h"

namespace qrm::manager {

struct StopSignals::Impl {
  explicit Impl(boost::asio::io_context& io) : signals(io, SIGTERM, SIGINT), hangups(io) {}

  void AwaitHangup();

  boost::asio::signal_set signals;
  boost::asio::signal_set hangups;
  std::function<void()> on_hangup;
  std::promise<void> caught;
};

StopSignals::StopSignals(boost::asio::io_context& io) : impl_(new Impl(io)) {
  impl_->signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) {
      log::Info("stopping", {{"signal", signal}});
      impl_->caught.set_value();
    }
  });
}

StopSignals::~StopSignals() = default;

void StopSignals::Wait() {
  impl_->caught.get_future().wait();
}

void StopSignals::OnHangup(std::function<void()> on_hangup) {
  impl_->on_hangup = std::move(on_hangup);
  impl_->hangups.add(SIGHUP);
  impl_->AwaitHangup();
}

void StopSignals::Impl::AwaitHangup() {
  hangups.async_wait([this](const boost::system::error_code& error, int /*signal*/) {
    if (!error) {
      on_hangup();
      AwaitHangup();
    }
  });
}

}  // namespace qrm::manager
