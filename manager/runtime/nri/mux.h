// The multiplexer of an NRI connection: one socket that carries several byte streams.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/base/mutex.h"
#include "api/base/sockets.h"
#include "api/base/status.h"
#include "manager/runtime/nri/frames.h"

namespace qrm::manager {

/// Owns the socket: always reads, so that no logical connection delays another, and writes whole
/// messages in the order they were sent. The operations in flight keep it alive.
///
/// Threads: the I/O loop, except for Send.
class Mux : public std::enable_shared_from_this<Mux> {
 public:
  using Socket = UnixSocket;
  using Receiver = std::function<void(std::string_view piece)>;
  using Closed = std::function<void(const Status& cause)>;

  explicit Mux(Socket socket);
  ~Mux();
  Mux(const Mux&) = delete;
  Mux& operator=(const Mux&) = delete;

  /// Passes bytes for `connection` to `receiver`; bytes for others are dropped. Before Start.
  void SetReceiver(uint32_t connection, Receiver receiver);
  /// Begins to read. `closed` runs once, when the socket has failed, has ended or was closed.
  void Start(Closed closed);

  /// Sends one ttrpc message as two frames, header and data: the peer's reader takes only frames of
  /// the size that it asks for, and it asks for these two. Dropped after the end. Writes as much as
  /// the socket takes at once, so that an answer does not wait for another thread. Threads: any.
  void Send(uint32_t connection, const std::string& header, const std::string& data);

  void Close(const Status& cause);

 private:
  bool is_open();
  void Read();
  void Write();
  /// Drops from `unsent_` what the socket takes without waiting.
  void WriteNow() QRM_REQUIRES(mutex_);

  const std::unique_ptr<Socket> socket_;
  std::array<char, 65536> buffer_{};
  MuxDecoder decoder_;
  std::map<uint32_t, Receiver> receivers_;
  Closed closed_;

  Mutex mutex_;
  bool open_ QRM_GUARDED_BY(mutex_) = true;      // changes on the loop only
  bool writing_ QRM_GUARDED_BY(mutex_) = false;  // the loop writes, or is about to
  std::string unsent_ QRM_GUARDED_BY(mutex_);
  std::string sending_;  // being written by the loop
};

}  // namespace qrm::manager
