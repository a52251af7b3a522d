// Reads and writes the mux's frames on its socket.
#include "manager/runtime/nri/mux.h"

#include <utility>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "api/base/errorf.h"

namespace qrm::manager {

Mux::Mux(Socket socket) : socket_(std::make_unique<Socket>(std::move(socket))) {}

Mux::~Mux() = default;

void Mux::SetReceiver(uint32_t connection, Receiver receiver) {
  receivers_[connection] = std::move(receiver);
}

void Mux::Start(Closed closed) {
  closed_ = std::move(closed);
  Read();
}

bool Mux::is_open() {
  const MutexLock lock(mutex_);
  return open_;
}

void Mux::Read() {
  socket_->async_read_some(
      boost::asio::buffer(buffer_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (!self->is_open()) {
          return;
        }
        if (error) {
          self->Close(Errorf(StatusCode::kUnavailable, "the runtime closed the NRI connection: {}",
                             error.message()));
          return;
        }
        const Status decoded = self->decoder_.Feed(
            {self->buffer_.data(), size}, [&self](uint32_t connection, std::string_view piece) {
              const auto receiver = self->receivers_.find(connection);
              if (self->is_open() && receiver != self->receivers_.end()) {
                receiver->second(piece);
              }
            });
        if (!decoded.ok()) {
          self->Close(decoded);
          return;
        }
        if (self->is_open()) {
          self->Read();
        }
      });
}

void Mux::Send(uint32_t connection, const std::string& header, const std::string& data) {
  const MutexLock lock(mutex_);
  if (!open_) {
    return;
  }
  unsent_ += EncodeMuxHeader(connection, header.size()) + header;
  if (!data.empty()) {
    unsent_ += EncodeMuxHeader(connection, data.size()) + data;
  }
  if (writing_) {
    return;
  }
  WriteNow();
  if (!unsent_.empty()) {
    writing_ = true;
    boost::asio::post(socket_->get_executor(), [self = shared_from_this()] { self->Write(); });
  }
}

// The loop writes the rest, and reports errors.
void Mux::WriteNow() {
  const ssize_t written =
      ::send(socket_->native_handle(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (written > 0) {
    unsent_.erase(0, static_cast<std::size_t>(written));
  }
}

void Mux::Write() {
  {
    const MutexLock lock(mutex_);
    if (!open_) {
      return;
    }
    sending_ = std::exchange(unsent_, {});
    writing_ = !sending_.empty();
    if (!writing_) {
      return;
    }
  }
  boost::asio::async_write(
      *socket_, boost::asio::buffer(sending_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        if (error) {
          self->Close(Errorf(StatusCode::kUnavailable, "cannot write to the NRI connection: {}",
                             error.message()));
        } else {
          self->Write();
        }
      });
}

void Mux::Close(const Status& cause) {
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(open_, false)) {
      return;
    }
    boost::system::error_code ignored;
    socket_->close(ignored);
  }
  // A receiver may be the caller: let it return before it is destroyed.
  boost::asio::post(socket_->get_executor(), [self = shared_from_this(), cause] {
    self->receivers_.clear();
    if (const Closed closed = std::exchange(self->closed_, nullptr)) {
      closed(cause);
    }
  });
}

}  // namespace qrm::manager
