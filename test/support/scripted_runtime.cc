#include "test/support/scripted_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/check.h"

namespace qrm::test {
namespace {

constexpr std::size_t kGoBuffer = 4096;
constexpr std::size_t kTtrpcHeader = 10;
constexpr uint32_t kPlugin = 1;
constexpr uint32_t kRuntime = 2;
constexpr uint8_t kRequest = 1;
constexpr uint8_t kResponse = 2;

uint32_t Read32(const char* bytes) {
  const auto* octets = reinterpret_cast<const unsigned char*>(bytes);
  return uint32_t{octets[0]} << 24 | uint32_t{octets[1]} << 16 | uint32_t{octets[2]} << 8 |
         octets[3];
}

std::string Pack32(std::size_t value) {
  return {static_cast<char>(value >> 24 & 0xff), static_cast<char>(value >> 16 & 0xff),
          static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

bool ReadExactly(int fd, char* to, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t count = ::read(fd, to + got, size - got);
    if (count <= 0) {
      return false;
    }
    got += static_cast<std::size_t>(count);
  }
  return true;
}

int Listen(const std::string& path) {
  ::unlink(path.c_str());
  sockaddr_un address{.sun_family = AF_UNIX};
  QRM_CHECK(path.size() < sizeof(address.sun_path));
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  QRM_CHECK(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  QRM_CHECK(::listen(fd, 8) == 0);
  return fd;
}

}  // namespace

/// Go reads a message's header through a buffer of 4096 bytes, and the rest of a large message
/// straight into its place: a frame must fit what is asked for at that moment.
std::size_t ScriptedRuntime::GoReader::LargestFrameTaken() const {
  if (buffered.size() < kTtrpcHeader) {
    return kGoBuffer;
  }
  const std::size_t wanted = Read32(buffered.data()) - (buffered.size() - kTtrpcHeader);
  return std::max(kGoBuffer, wanted);
}

std::optional<std::string> ScriptedRuntime::GoReader::TakeMessage(uint32_t& stream, uint8_t& type) {
  if (buffered.size() < kTtrpcHeader) {
    return std::nullopt;
  }
  const std::size_t length = Read32(buffered.data());
  if (buffered.size() < kTtrpcHeader + length) {
    return std::nullopt;
  }
  stream = Read32(buffered.data() + 4);
  type = static_cast<uint8_t>(buffered[8]);
  std::string data = buffered.substr(kTtrpcHeader, length);
  buffered.erase(0, kTtrpcHeader + length);
  return data;
}

ScriptedRuntime::ScriptedRuntime(std::string socket, ScriptedRuntimeOptions options)
    : socket_(std::move(socket)),
      options_(std::move(options)),
      listener_(Listen(socket_)),
      take_inventory_([this] { return Inventory{options_.pods, options_.containers}; }) {
  acceptor_ = std::thread([this] { AcceptLoop(); });
}

ScriptedRuntime::~ScriptedRuntime() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  ::shutdown(listener_, SHUT_RDWR);
  Disconnect();
  acceptor_.join();
  ::close(listener_);
  ::unlink(socket_.c_str());
}

void ScriptedRuntime::AcceptLoop() {
  while (true) {
    const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    {
      const MutexLock lock(mutex_);
      if (peer < 0 || stopping_) {
        if (peer >= 0) {
          ::close(peer);
        }
        return;
      }
      peer_ = peer;
      next_stream_ = 1;
      responses_.clear();
    }
    ++connections_;
    Serve();
  }
}

void ScriptedRuntime::Serve() {
  std::map<uint32_t, GoReader> readers;
  while (ReadFrame(readers)) {
  }
  int peer = -1;
  {
    const MutexLock lock(mutex_);
    peer = std::exchange(peer_, -1);
    changed_.NotifyAll();
  }
  if (greeter_.joinable()) {
    greeter_.join();
  }
  const MutexLock lock(write_mutex_);
  ::close(peer);
}

bool ScriptedRuntime::ReadFrame(std::map<uint32_t, GoReader>& readers) {
  int peer = -1;
  {
    const MutexLock lock(mutex_);
    peer = peer_;
  }
  char header[8];
  if (!ReadExactly(peer, header, sizeof(header))) {
    return false;
  }
  const uint32_t connection = Read32(header);
  std::string payload(Read32(header + 4), '\0');
  if (!ReadExactly(peer, payload.data(), payload.size())) {
    return false;
  }
  GoReader& reader = readers[connection];
  if (payload.size() > reader.LargestFrameTaken()) {
    const MutexLock lock(mutex_);
    violation_ = fmt::format("a frame of {} bytes where {} were asked for", payload.size(),
                             reader.LargestFrameTaken());
    return false;
  }
  reader.buffered += payload;
  uint32_t stream = 0;
  uint8_t type = 0;
  while (const std::optional<std::string> message = reader.TakeMessage(stream, type)) {
    OnMessage(connection, stream, type, *message);
  }
  return true;
}

void ScriptedRuntime::OnMessage(uint32_t connection, uint32_t stream, uint8_t type,
                                const std::string& data) {
  if (connection == kPlugin && type == kResponse) {
    const MutexLock lock(mutex_);
    responses_[stream].ParseFromString(data);
    changed_.NotifyAll();
    return;
  }
  ttrpc::Request request;
  if (connection != kRuntime || type != kRequest || !request.ParseFromString(data) ||
      request.method() != "RegisterPlugin") {
    return;
  }
  {
    const MutexLock lock(mutex_);
    registration_.ParseFromString(request.payload());
  }
  Send(kRuntime, stream, kResponse, ttrpc::Response().SerializeAsString());
  greeter_ = std::thread([this] { Greet(); });
}

void ScriptedRuntime::Greet() {
  nri::ConfigureRequest configure;
  configure.set_runtime_name(options_.name);
  configure.set_runtime_version(options_.version);
  configure.set_nri_version(options_.nri_version);
  configure.set_request_timeout(options_.request_timeout_ms);
  const StatusOr<std::string> configured = Call("Configure", configure.SerializeAsString());
  nri::ConfigureResponse response;
  if (!configured.ok() || !response.ParseFromString(*configured) ||
      (response.events() & ~options_.known_events) != 0 || !Synchronize()) {
    return Disconnect();
  }
  const MutexLock lock(mutex_);
  subscribed_ = response.events();
  ++synchronizations_;
  changed_.NotifyAll();
}

bool ScriptedRuntime::Synchronize() {
  const auto chunks = static_cast<std::size_t>(options_.synchronize_chunks);
  std::function<Inventory()> take;
  {
    const MutexLock lock(mutex_);
    take = take_inventory_;
  }
  const auto [pods, containers] = take();
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    nri::SynchronizeRequest request;
    for (std::size_t i = chunk; i < pods.size(); i += chunks) {
      *request.add_pods() = pods[i];
    }
    for (std::size_t i = chunk; i < containers.size(); i += chunks) {
      *request.add_containers() = containers[i];
    }
    request.set_more(chunk + 1 < chunks);
    const StatusOr<std::string> answer = Call("Synchronize", request.SerializeAsString());
    nri::SynchronizeResponse response;
    if (!answer.ok() || !response.ParseFromString(*answer) || response.more() != request.more() ||
        (request.more() && response.update_size() > 0)) {
      return false;
    }
    const MutexLock lock(mutex_);
    synchronize_responses_.push_back(response);
  }
  return true;
}

void ScriptedRuntime::SendPieces(std::string_view bytes, std::size_t piece) {
  int peer = -1;
  {
    const MutexLock lock(mutex_);
    peer = peer_;
  }
  while (!bytes.empty()) {
    const ssize_t sent = ::send(peer, bytes.data(), std::min(bytes.size(), piece), MSG_NOSIGNAL);
    if (sent < 0) {
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void ScriptedRuntime::SendFrame(uint32_t connection, std::string_view payload) {
  const bool whole = options_.framing == ScriptedRuntimeOptions::Framing::kAsGo;
  SendPieces(Pack32(connection) + Pack32(payload.size()) + std::string(payload),
             whole ? std::string_view::npos : 3);
}

void ScriptedRuntime::Send(uint32_t connection, uint32_t stream, uint8_t type,
                           const std::string& data) {
  const std::string message =
      Pack32(data.size()) + Pack32(stream) + static_cast<char>(type) + '\0' + data;
  const bool whole = options_.framing == ScriptedRuntimeOptions::Framing::kAsGo;
  const MutexLock lock(write_mutex_);
  std::string_view rest = message;
  for (std::size_t piece = whole ? kGoBuffer : 7; !rest.empty(); piece = whole ? rest.size() : 7) {
    SendFrame(connection, rest.substr(0, piece));
    rest.remove_prefix(std::min(rest.size(), piece));
  }
}

StatusOr<std::string> ScriptedRuntime::Call(const std::string& method, const std::string& request,
                                            std::chrono::milliseconds timeout) {
  ttrpc::Request envelope;
  envelope.set_service("nri.pkg.api.v1alpha1.Plugin");
  envelope.set_method(method);
  envelope.set_payload(request);
  envelope.set_timeout_nano(std::chrono::nanoseconds(timeout).count());
  uint32_t stream = 0;
  int connection = 0;
  {
    const MutexLock lock(mutex_);
    if (peer_ < 0) {
      return Errorf(StatusCode::kUnavailable, "no plugin is connected");
    }
    connection = connections_;
    stream = std::exchange(next_stream_, next_stream_ + 2);
  }
  Send(kPlugin, stream, kRequest, envelope.SerializeAsString());
  ttrpc::Response response;
  bool answered = false;
  bool lost = false;
  {
    const MutexLock lock(mutex_);
    changed_.WaitUntil(
        mutex_, std::chrono::steady_clock::now() + timeout, [&]() QRM_REQUIRES(mutex_) {
          return responses_.count(stream) > 0 || peer_ < 0 || connections_ != connection;
        });
    lost = peer_ < 0 || connections_ != connection;
    if (!lost && responses_.count(stream) > 0) {
      response = std::move(responses_[stream]);
      responses_.erase(stream);
      answered = true;
    }
  }
  if (!answered) {
    if (!lost) {
      Disconnect();
    }
    return Errorf(lost ? StatusCode::kUnavailable : StatusCode::kDeadlineExceeded,
                  "no answer to {}", method);
  }
  if (response.status().code() != 0) {
    return Status(static_cast<StatusCode>(response.status().code()), response.status().message());
  }
  return response.payload();
}

StatusOr<nri::CreateContainerResponse> ScriptedRuntime::CreateContainer(
    const nri::PodSandbox& pod, const nri::Container& container,
    std::chrono::milliseconds timeout) {
  nri::CreateContainerRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  QRM_ASSIGN_OR_RETURN(const std::string payload,
                       Call("CreateContainer", request.SerializeAsString(), timeout));
  nri::CreateContainerResponse response;
  if (!response.ParseFromString(payload)) {
    return Errorf(StatusCode::kInternal, "the plugin's answer is no CreateContainerResponse");
  }
  return response;
}

Status ScriptedRuntime::StateChange(nri::Event event, const nri::PodSandbox& pod,
                                    const nri::Container& container) {
  nri::StateChangeEvent change;
  change.set_event(event);
  *change.mutable_pod() = pod;
  *change.mutable_container() = container;
  return Call("StateChange", change.SerializeAsString()).status();
}

void ScriptedRuntime::SetInventory(std::function<Inventory()> take) {
  const MutexLock lock(mutex_);
  take_inventory_ = std::move(take);
}

void ScriptedRuntime::SendRaw(std::string_view bytes) {
  const MutexLock lock(write_mutex_);
  SendPieces(bytes, std::string_view::npos);
}

void ScriptedRuntime::Disconnect() {
  const MutexLock lock(mutex_);
  if (peer_ >= 0) {
    ::shutdown(peer_, SHUT_RDWR);
  }
}

bool ScriptedRuntime::WaitForSynchronizations(int count) {
  const MutexLock lock(mutex_);
  return changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::seconds(10),
                            [&]() QRM_REQUIRES(mutex_) { return synchronizations_ >= count; });
}

nri::RegisterPluginRequest ScriptedRuntime::registration() const {
  const MutexLock lock(mutex_);
  return registration_;
}

int32_t ScriptedRuntime::subscribed_events() const {
  const MutexLock lock(mutex_);
  return subscribed_;
}

std::vector<nri::SynchronizeResponse> ScriptedRuntime::synchronize_responses() const {
  const MutexLock lock(mutex_);
  return synchronize_responses_;
}

std::string ScriptedRuntime::violation() const {
  const MutexLock lock(mutex_);
  return violation_;
}

}  // namespace qrm::test
