// Reads and writes the mux's frames on its socket.
#include "manager/runtime/nri/mux.h"

#include <iterator>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace qrm::manager {

Mux::Mux(Socket socket) : socket_(std::move(socket)) {}

void Mux::SetReceiver(uint32_t connection, Receiver receiver) {
  receivers_[connection] = std::move(receiver);
}

void Mux::Start(Closed closed) {
  closed_ = std::move(closed);
  Read();
}

void Mux::Read() {
  socket_.async_read_some(
      boost::asio::buffer(buffer_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (!self->open_) {
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
              if (self->open_ && receiver != self->receivers_.end()) {
                receiver->second(piece);
              }
            });
        if (!decoded.ok()) {
          self->Close(decoded);
          return;
        }
        if (self->open_) {
          self->Read();
        }
      });
}

void Mux::Send(uint32_t connection, const std::string& header, std::string data) {
  if (!open_) {
    return;
  }
  unsent_.push_back(EncodeMuxHeader(connection, header.size()) + header);
  if (!data.empty()) {
    unsent_.push_back(EncodeMuxHeader(connection, data.size()));
    unsent_.push_back(std::move(data));
  }
  if (sending_.empty()) {
    Write();
  }
}

void Mux::Write() {
  sending_.assign(std::make_move_iterator(unsent_.begin()), std::make_move_iterator(unsent_.end()));
  unsent_.clear();
  std::vector<boost::asio::const_buffer> buffers;
  buffers.reserve(sending_.size());
  for (const std::string& part : sending_) {
    buffers.push_back(boost::asio::buffer(part));
  }
  boost::asio::async_write(
      socket_, buffers,
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        self->sending_.clear();
        if (!self->open_) {
          return;
        }
        if (error) {
          self->Close(Errorf(StatusCode::kUnavailable, "cannot write to the NRI connection: {}",
                             error.message()));
        } else if (!self->unsent_.empty()) {
          self->Write();
        }
      });
}

void Mux::Close(const Status& cause) {
  if (!open_) {
    return;
  }
  open_ = false;
  boost::system::error_code ignored;
  socket_.close(ignored);
  // A receiver may be the caller: let it return before it is destroyed.
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), cause] {
    self->receivers_.clear();
    if (const Closed closed = std::exchange(self->closed_, nullptr)) {
      closed(cause);
    }
  });
}

}  // namespace qrm::manager
