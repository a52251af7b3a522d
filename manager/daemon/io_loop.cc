// Runs an io_context on its own thread.
#include "manager/daemon/io_loop.h"

#include <future>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace qrm::manager {

struct IoLoop::Impl {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{io.get_executor()};
  std::thread thread;
};

IoLoop::IoLoop() : impl_(new Impl) {}

IoLoop::~IoLoop() = default;

boost::asio::io_context& IoLoop::io() {
  return impl_->io;
}

void IoLoop::Start() {
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

void IoLoop::Run(const std::function<void()>& work) {
  std::promise<void> done;
  boost::asio::post(impl_->io, [&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void IoLoop::Stop() {
  impl_->io.stop();
  if (impl_->thread.joinable()) {
    impl_->thread.join();
  }
}

}  // namespace qrm::manager
