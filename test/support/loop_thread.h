// An I/O loop on a separate thread, as the daemon has one.
#pragma once

#include <future>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace qrm::test {

/// Runs until it is destroyed, after all posted work.
class LoopThread {
 public:
  LoopThread() : guard_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  // NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
  ~LoopThread() { Stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  boost::asio::io_context& io() { return io_; }

  /// Runs `work` on the loop and waits for it.
  template <typename Work>
  void Run(Work work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Ends the loop without waiting for operations in flight. May be repeated.
  void Stop() {
    if (thread_.joinable()) {
      boost::asio::post(io_, [this] { io_.stop(); });
      thread_.join();
    }
  }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace qrm::test
