// Runs an io_context on a thread of its own.
#include "manager/daemon/io_loop.h"

#include <future>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace qrm::manager {

void IoLoop::Start() {
  thread_ = std::thread([this] { io_.run(); });
}

void IoLoop::Run(const std::function<void()>& work) {
  std::promise<void> done;
  boost::asio::post(io_, [&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void IoLoop::Stop() {
  io_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace qrm::manager
