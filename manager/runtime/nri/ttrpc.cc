// Sends and answers ttrpc requests on one connection of the mux.
#include "manager/runtime/nri/ttrpc.h"

#include <map>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/errorf.h"
#include "api/message_fields.h"
#include "api/proto/ttrpc/ttrpc.pb.h"

namespace qrm::manager {
namespace {

void SendResponse(Mux& mux, uint32_t connection, uint32_t stream, StatusOr<std::string> response) {
  if (response.ok() && response->size() > kMaxSendBytes) {
    response = Errorf(StatusCode::kResourceExhausted,
                      "cannot answer: {} bytes exceed the {} that ttrpc carries; ask for less",
                      response->size(), kMaxSendBytes);
  }
  ttrpc::Response envelope;
  if (response.ok()) {
    envelope.set_payload(*std::move(response));
  } else {
    envelope.mutable_status()->set_code(static_cast<int>(response.status().code()));
    envelope.mutable_status()->set_message(MessageOf(response.status()));
  }
  const std::string data = envelope.SerializeAsString();
  const std::string header = EncodeTtrpcHeader(stream, TtrpcType::kResponse, data.size());
  mux.Send(connection, header, data);
}

/// The serving side of one connection.
struct Server {
  std::weak_ptr<Mux> mux;  // which owns this
  uint32_t connection;
  TtrpcHandler handler;
  TtrpcDecoder decoder;
  uint32_t last_stream = 0;

  void Receive(const TtrpcFrame& frame);
  Status CheckRequest(const TtrpcFrame& frame);
};

Status Server::CheckRequest(const TtrpcFrame& frame) {
  if (frame.stream % 2 == 0 || frame.stream <= last_stream) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot take the request: stream {} is even, or not above {}; use odd, rising numbers",
        frame.stream, last_stream);
  }
  last_stream = frame.stream;
  if (frame.oversized != 0) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot take the request: {} bytes exceed {}; send less", frame.oversized,
                  kMaxReceiveBytes);
  }
  return OkStatus();
}

/// Reads the envelope of a request. Its payload, up to 64 MiB, is not copied.
bool OpenRequest(std::string_view bytes, ttrpc::Request& request, std::string_view& payload) {
  const auto envelope = TakeFields(bytes, [&](int field, std::string_view taken) {
    const bool is_payload = field == ttrpc::Request::kPayloadFieldNumber;
    payload = is_payload ? taken : payload;
    return is_payload;
  });
  return envelope.has_value() && request.ParseFromString(*envelope);
}

void Server::Receive(const TtrpcFrame& frame) {
  const std::shared_ptr<Mux> out = mux.lock();
  if (out == nullptr || frame.type != TtrpcType::kRequest) {
    return;
  }
  ttrpc::Request request;
  std::string_view payload;
  Status acceptable = CheckRequest(frame);
  if (acceptable.ok() && !OpenRequest(frame.data, request, payload)) {
    acceptable =
        Errorf(StatusCode::kInvalidArgument,
               "cannot take the request: its envelope is not a ttrpc.Request; check the peer");
  }
  if (!acceptable.ok()) {
    SendResponse(*out, connection, frame.stream, acceptable);
    return;
  }
  handler(TtrpcCall{.service = std::move(*request.mutable_service()),
                    .method = std::move(*request.mutable_method()),
                    .payload = payload,
                    .timeout = std::chrono::nanoseconds(request.timeout_nano())},
          [weak = mux, to = connection, stream = frame.stream](StatusOr<std::string> response) {
            if (const std::shared_ptr<Mux> target = weak.lock()) {
              SendResponse(*target, to, stream, std::move(response));
            }
          });
}

StatusOr<std::string> OpenResponse(const TtrpcFrame& frame) {
  ttrpc::Response envelope;
  if (frame.oversized != 0 || !envelope.ParseFromString(frame.data)) {
    return Errorf(
        StatusCode::kInternal,
        "cannot read the runtime's answer: it is not a ttrpc.Response; check the runtime");
  }
  if (envelope.status().code() != 0) {
    return Status(static_cast<StatusCode>(envelope.status().code()), envelope.status().message());
  }
  return std::move(*envelope.mutable_payload());
}

}  // namespace

void ServeTtrpc(const std::shared_ptr<Mux>& mux, uint32_t connection, TtrpcHandler handler) {
  auto server = std::make_shared<Server>();
  server->mux = mux;
  server->connection = connection;
  server->handler = std::move(handler);
  mux->SetReceiver(connection, [server](std::string_view piece) {
    server->decoder.Feed(piece, [&](const TtrpcFrame& frame) { server->Receive(frame); });
  });
}

struct TtrpcClient::State {
  struct Pending {
    Done done;
    boost::asio::steady_timer timer;
  };

  State(boost::asio::io_context& loop, const std::shared_ptr<Mux>& trunk, uint32_t number)
      : io(loop), mux(trunk), connection(number) {}

  void Finish(uint32_t stream, StatusOr<std::string> response) {
    const auto found = pending.find(stream);
    if (found == pending.end()) {
      return;  // it has timed out
    }
    const Done done = std::move(found->second.done);
    pending.erase(found);
    done(std::move(response));
  }

  boost::asio::io_context& io;
  std::weak_ptr<Mux> mux;
  uint32_t connection;
  TtrpcDecoder decoder;
  uint32_t next_stream = 1;
  std::map<uint32_t, Pending> pending;
};

TtrpcClient::TtrpcClient(boost::asio::io_context& io, const std::shared_ptr<Mux>& mux,
                         uint32_t connection)
    : state_(std::make_shared<State>(io, mux, connection)) {
  mux->SetReceiver(connection, [weak = std::weak_ptr<State>(state_)](std::string_view piece) {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) {
      return;
    }
    state->decoder.Feed(piece, [&](const TtrpcFrame& frame) {
      if (frame.type == TtrpcType::kResponse) {
        state->Finish(frame.stream, OpenResponse(frame));
      }
    });
  });
}

TtrpcClient::~TtrpcClient() {
  while (!state_->pending.empty()) {
    state_->Finish(state_->pending.begin()->first,
                   Errorf(StatusCode::kCancelled, "the NRI connection ended before the answer"));
  }
}

void TtrpcClient::Call(const std::string& service, const std::string& method,
                       const std::string& request, std::chrono::nanoseconds timeout, Done done) {
  const std::shared_ptr<Mux> mux = state_->mux.lock();
  if (mux == nullptr) {
    done(Errorf(StatusCode::kUnavailable, "cannot call {}: the NRI connection is closed", method));
    return;
  }
  ttrpc::Request envelope;
  envelope.set_service(service);
  envelope.set_method(method);
  envelope.set_payload(request);
  envelope.set_timeout_nano(timeout.count());
  const std::string data = envelope.SerializeAsString();

  const uint32_t stream = std::exchange(state_->next_stream, state_->next_stream + 2);
  boost::asio::steady_timer timer(state_->io, timeout);
  timer.async_wait([weak = std::weak_ptr<State>(state_), stream, method,
                    timeout](const boost::system::error_code& error) {
    const std::shared_ptr<State> state = weak.lock();
    if (!error && state != nullptr) {
      state->Finish(stream,
                    Errorf(StatusCode::kDeadlineExceeded, "no answer to {} within {} ms", method,
                           std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()));
    }
  });
  state_->pending.emplace(stream, State::Pending{std::move(done), std::move(timer)});
  const std::string header = EncodeTtrpcHeader(stream, TtrpcType::kRequest, data.size());
  mux->Send(state_->connection, header, data);
}

}  // namespace qrm::manager
