// Sends one datagram per message.
#include "manager/daemon/process/service_manager.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"
#include "api/base/number.h"

namespace qrm::manager {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Half of the watchdog's timeout, so that a single late message does no harm. 0: no watchdog.
std::chrono::microseconds FeedingPeriod() {
  const std::string pid = Variable("WATCHDOG_PID");
  const bool is_meant = pid.empty() || pid == std::to_string(::getpid());
  const int64_t limit = ParseNumber<int64_t>(Variable("WATCHDOG_USEC")).value_or(0);
  return std::chrono::microseconds(is_meant && limit > 0 ? limit / 2 : 0);
}

void Send(const std::string& socket, std::string_view line) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) {
    return;
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (socket.front() == '@') {
    address.sun_path[0] = '\0';  // of the abstract namespace
  }
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface.
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (descriptor < 0 ||
      ::sendto(descriptor, line.data(), line.size(), MSG_NOSIGNAL, to, length) < 0) {
    log::Warning("cannot notify the service manager",
                 {{"socket", socket}, {"error", std::strerror(errno)}});
  }
  if (descriptor >= 0) {
    ::close(descriptor);
  }
}

}  // namespace

struct ServiceManager::Impl {
  void Feed();

  boost::asio::io_context& io;
  const std::function<bool()> is_alive;
  boost::asio::steady_timer timer{io};
  const std::string socket = Variable("NOTIFY_SOCKET");
  const std::chrono::microseconds period = FeedingPeriod();  ///< 0: no watchdog
};

ServiceManager::ServiceManager(boost::asio::io_context& io, std::function<bool()> is_alive)
    : impl_(new Impl{io, std::move(is_alive)}) {}

ServiceManager::~ServiceManager() = default;

void ServiceManager::Ready() {
  Send(impl_->socket, "READY=1");
  if (!impl_->socket.empty() && impl_->period.count() > 0) {
    boost::asio::post(impl_->io, [this] { impl_->Feed(); });
  }
}

void ServiceManager::Ending() {
  impl_->timer.cancel();
  Send(impl_->socket, "STOPPING=1");
}

void ServiceManager::Impl::Feed() {
  if (is_alive()) {
    Send(socket, "WATCHDOG=1");
  }
  timer.expires_after(period);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Feed();
    }
  });
}

}  // namespace qrm::manager
