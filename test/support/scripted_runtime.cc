// Speaks the runtime's side of NRI over a socket.
#include "test/support/scripted_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "api/base/check.h"
#include "api/base/errorf.h"

namespace qrm::test {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr std::size_t kGoBuffer = 4096;

/// Objects per message: a message of ttrpc has at most 4 MiB.
constexpr std::size_t kMostInAChunk = 2000;
constexpr uint32_t kPlugin = 1;
constexpr uint32_t kRuntime = 2;
constexpr uint8_t kRequest = 1;
constexpr uint8_t kResponse = 2;

template <typename Message>
std::vector<std::string> Serialized(const std::vector<Message>& messages) {
  std::vector<std::string> all;
  all.reserve(messages.size());
  for (const Message& message : messages) {
    all.push_back(message.SerializeAsString());
  }
  return all;
}

/// A SynchronizeRequest of every `step`th pod and container from `first` on.
std::string RequestOf(const ScriptedRuntime::Inventory& all, std::size_t first, std::size_t step,
                      bool more) {
  std::string bytes;
  google::protobuf::io::StringOutputStream to(&bytes);
  google::protobuf::io::CodedOutputStream out(&to);
  const auto add = [&](int field, const std::vector<std::string>& messages) {
    for (std::size_t i = first; i < messages.size(); i += step) {
      WireFormatLite::WriteBytes(field, messages[i], &out);
    }
  };
  add(nri::SynchronizeRequest::kPodsFieldNumber, all.pods);
  add(nri::SynchronizeRequest::kContainersFieldNumber, all.containers);
  WireFormatLite::WriteBool(nri::SynchronizeRequest::kMoreFieldNumber, more, &out);
  out.Trim();
  return bytes;
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
  QRM_CHECK(fd >= 0);
  QRM_CHECK(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  QRM_CHECK(::listen(fd, 8) == 0);
  return fd;
}

}  // namespace

ScriptedRuntime::ScriptedRuntime(std::string socket, ScriptedRuntimeOptions options)
    : socket_(std::move(socket)),
      options_(std::move(options)),
      listener_(Listen(socket_)),
      take_inventory_([this] {
        return Inventory{Serialized(options_.pods), Serialized(options_.containers)};
      }) {
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
    for (const auto& [stream, waiting] : waiting_) {
      waiting->changed.NotifyAll();
    }
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
  if (std::string violation = reader.Take(payload); !violation.empty()) {
    const MutexLock lock(mutex_);
    violation_ = std::move(violation);
    return false;
  }
  while (const std::optional<GoMessage> message = reader.Next()) {
    OnMessage(connection, *message);
  }
  return true;
}

void ScriptedRuntime::OnMessage(uint32_t connection, const GoMessage& message) {
  if (connection == kPlugin && message.type == kResponse) {
    const MutexLock lock(mutex_);
    if (const auto found = waiting_.find(message.stream); found != waiting_.end()) {
      found->second->response.emplace().ParseFromString(message.data);
      found->second->changed.NotifyAll();
    }
    return;
  }
  ttrpc::Request request;
  if (connection != kRuntime || message.type != kRequest ||
      !request.ParseFromString(message.data)) {
    return;
  }
  if (request.method() != "RegisterPlugin") {
    const MutexLock lock(mutex_);
    unsolicited_.push_back(request.method());
    return;
  }
  {
    const MutexLock lock(mutex_);
    registration_.ParseFromString(request.payload());
  }
  ttrpc::Response answer;
  if (options_.registration == ScriptedRuntimeOptions::Registration::kRefused) {
    answer.mutable_status()->set_code(static_cast<int>(StatusCode::kUnknown));
    answer.mutable_status()->set_message("the script says no");
    Send(kRuntime, message.stream, kResponse, answer.SerializeAsString());
    return;
  }
  greeter_ = std::thread([this, stream = message.stream] { Greet(stream); });
}

void ScriptedRuntime::Greet(uint32_t stream) {
  const std::string registered = ttrpc::Response().SerializeAsString();
  const bool first = options_.registration == ScriptedRuntimeOptions::Registration::kAnsweredFirst;
  if (first) {
    Send(kRuntime, stream, kResponse, registered);
  }
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
  if (!first) {
    Send(kRuntime, stream, kResponse, registered);
  }
  const MutexLock lock(mutex_);
  subscribed_ = response.events();
  ++synchronizations_;
  changed_.NotifyAll();
}

bool ScriptedRuntime::Synchronize() {
  std::function<Inventory()> take;
  {
    const MutexLock lock(mutex_);
    take = take_inventory_;
  }
  const Inventory all = take();
  const std::size_t chunks =
      std::max(static_cast<std::size_t>(options_.synchronize_chunks),
               1 + std::max(all.pods.size(), all.containers.size()) / kMostInAChunk);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const bool more = chunk + 1 < chunks;
    const StatusOr<std::string> answer = Call("Synchronize", RequestOf(all, chunk, chunks, more));
    nri::SynchronizeResponse response;
    if (!answer.ok() || !response.ParseFromString(*answer) || response.more() != more ||
        (more && response.update_size() > 0)) {
      return false;
    }
    if (connections_ == 1 && static_cast<int>(chunk) + 1 == options_.cut_after_chunks) {
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
  const MutexLock lock(write_mutex_);
  Write(connection, stream, type, data);
}

void ScriptedRuntime::Write(uint32_t connection, uint32_t stream, uint8_t type,
                            const std::string& data) {
  const std::string message =
      Pack32(data.size()) + Pack32(stream) + static_cast<char>(type) + '\0' + data;
  const bool whole = options_.framing == ScriptedRuntimeOptions::Framing::kAsGo;
  std::string_view rest = message;
  for (std::size_t piece = whole ? kGoBuffer : 7; !rest.empty(); piece = whole ? rest.size() : 7) {
    SendFrame(connection, rest.substr(0, piece));
    rest.remove_prefix(std::min(rest.size(), piece));
  }
}

Status ScriptedRuntime::Ask(const ttrpc::Request& request, std::optional<uint32_t> stream,
                            Waiting& waiting) {
  const MutexLock write_lock(write_mutex_);  // streams go out in their order
  {
    const MutexLock lock(mutex_);
    if (peer_ < 0) {
      return Errorf(StatusCode::kUnavailable, "no plugin is connected");
    }
    waiting.connection = connections_;
    waiting.stream = stream.has_value() ? *stream : std::exchange(next_stream_, next_stream_ + 2);
    waiting_[waiting.stream] = &waiting;
  }
  Write(kPlugin, waiting.stream, kRequest, request.SerializeAsString());
  return OkStatus();
}

StatusOr<std::string> ScriptedRuntime::Call(const std::string& method, const std::string& request,
                                            std::chrono::milliseconds timeout) {
  ttrpc::Request envelope;
  envelope.set_service("nri.pkg.api.v1alpha1.Plugin");
  envelope.set_method(method);
  envelope.set_payload(request);
  envelope.set_timeout_nano(std::chrono::nanoseconds(timeout).count());
  return CallRaw(envelope, std::nullopt, timeout);
}

StatusOr<std::string> ScriptedRuntime::CallRaw(const ttrpc::Request& request,
                                               std::optional<uint32_t> on_stream,
                                               std::chrono::milliseconds timeout) {
  Waiting waiting;
  QRM_RETURN_IF_ERROR(Ask(request, on_stream, waiting));
  bool lost = false;
  {
    const MutexLock lock(mutex_);
    const auto is_lost = [this, &waiting]() QRM_REQUIRES(mutex_) {
      return peer_ < 0 || connections_ != waiting.connection;
    };
    waiting.changed.WaitUntil(
        mutex_, std::chrono::steady_clock::now() + timeout,
        [&]() QRM_REQUIRES(mutex_) { return waiting.response.has_value() || is_lost(); });
    lost = is_lost();
    const auto own = waiting_.find(waiting.stream);
    if (own != waiting_.end() && own->second == &waiting) {
      waiting_.erase(own);
    }
  }
  if (lost || !waiting.response.has_value()) {
    if (!lost) {
      Disconnect();
    }
    return Errorf(lost ? StatusCode::kUnavailable : StatusCode::kDeadlineExceeded,
                  "no answer to {}", request.method());
  }
  const ttrpc::Response& response = *waiting.response;
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
    return Errorf(StatusCode::kInternal, "the plugin's answer is not a CreateContainerResponse");
  }
  return response;
}

Status ScriptedRuntime::StateChange(nri::Event event, const nri::PodSandbox& pod,
                                    const nri::Container& container,
                                    std::chrono::milliseconds timeout) {
  nri::StateChangeEvent change;
  change.set_event(event);
  *change.mutable_pod() = pod;
  *change.mutable_container() = container;
  return Call("StateChange", change.SerializeAsString(), timeout).status();
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

int ScriptedRuntime::synchronizations() const {
  const MutexLock lock(mutex_);
  return synchronizations_;
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

std::vector<std::string> ScriptedRuntime::unsolicited() const {
  const MutexLock lock(mutex_);
  return unsolicited_;
}

std::string ScriptedRuntime::violation() const {
  const MutexLock lock(mutex_);
  return violation_;
}

}  // namespace qrm::test
