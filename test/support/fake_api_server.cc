// One thread for each connection, which blocks.
#include "test/support/fake_api_server.h"

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <list>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "test/support/fake_api_store.h"
#include "test/support/tls_identity.h"

namespace qrm::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using nlohmann::json;
using Stream = asio::ssl::stream<tcp::socket>;
using Request = http::request<http::string_body>;

}  // namespace

struct FakeApiServer::Impl {
  Impl() {
    context.use_certificate_chain(asio::buffer(identity.certificate));
    context.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
    acceptor_thread = std::thread([this] { Accept(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
      writes_held = false;
      for (const int fd : sockets) {
        ::shutdown(fd, SHUT_RDWR);
      }
    }
    changed.notify_all();
    ::shutdown(acceptor.native_handle(), SHUT_RDWR);
    acceptor_thread.join();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Accept() {
    while (!stopped) {
      tcp::socket socket(io);
      error_code error;
      acceptor.accept(socket, error);
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);  // as the real one's
      const std::lock_guard lock(mutex);
      if (!error && !stopped) {
        ++accepted;
        sockets.insert(socket.native_handle());
        threads.emplace_back(&Impl::Serve, this, std::make_shared<tcp::socket>(std::move(socket)));
      }
    }
  }

  void Serve(const std::shared_ptr<tcp::socket>& socket) {
    const int fd = socket->native_handle();
    {
      Stream stream(std::move(*socket), context);
      error_code error;
      stream.handshake(asio::ssl::stream_base::server, error);
      boost::beast::flat_buffer buffer;
      while (!error && !stopped) {
        Request request;
        http::read(stream, buffer, request, error);
        if (error || !Respond(stream, request)) {
          break;
        }
      }
      const std::lock_guard lock(mutex);
      sockets.erase(fd);
    }
  }

  /// False when the connection has to end.
  bool Respond(Stream& stream, const Request& request) {
    const auto view = request.target();
    const std::string text(view.data(), view.size());
    const auto method_view = request.method_string();
    const std::string method(method_view.data(), method_view.size());
    const ApiTarget target = ParseApiTarget(text);
    bool lose = false;
    ApiAnswer answer;
    {
      std::unique_lock lock(mutex);
      requests.push_back(method + " " + text);
      if (method != "GET") {
        changed.wait(lock, [this] { return !writes_held; });
      }
      const auto field = request[http::field::authorization];
      if (!token.empty() && std::string(field.data(), field.size()) != "Bearer " + token) {
        answer = FailedAnswer(401, "Unauthorized");
      } else if (refusals > 0) {
        --refusals;
        answer = FailedAnswer(refusal_status, "rejected by the test");
        answer.retry_after = refusal_retry_after;
      } else if (target.query.contains("watch")) {
        // What a test does once it has seen the request counts for this watch.
        const uint64_t cut = cuts;
        const uint64_t marked = bookmarks;
        lock.unlock();
        Watch(stream, target, cut, marked);
        return false;
      } else {
        answer = store.Carry(method, target, request.body());
        changed.notify_all();
        lose = method != "GET" && lost_answers > 0;
        lost_answers -= lose ? 1 : 0;
      }
    }
    return !lose && Write(stream, answer);
  }

  static bool Write(Stream& stream, const ApiAnswer& answer) {
    http::response<http::string_body> response;
    response.result(answer.status);
    response.version(11);
    response.body() = answer.body.dump();
    if (answer.retry_after > 0) {
      response.set(http::field::retry_after, std::to_string(answer.retry_after));
    }
    response.keep_alive(true);
    response.prepare_payload();
    error_code error;
    http::write(stream, response, error);
    return !error;
  }

  /// Until the watches are cut after `cut` times; sends bookmarks after the `marked`-th.
  void Watch(Stream& stream, const ApiTarget& target, uint64_t cut, uint64_t marked) {
    error_code error;
    std::string text =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    asio::write(stream, asio::buffer(text), error);
    uint64_t told = std::stoull(target.query.at("resourceVersion"));
    std::unique_lock lock(mutex);
    if (told < forgotten) {
      lock.unlock();
      json gone = FailedAnswer(410, "too old resource version").body;
      Send(stream, {{"type", "ERROR"}, {"object", std::move(gone)}});
      return;
    }
    while (!error && !stopped && cuts == cut) {
      std::vector<json> lines = Unseen(store.Of(target.collection), told);
      if (std::exchange(marked, bookmarks) != bookmarks) {
        told = store.reached();
        lines.push_back({{"type", "BOOKMARK"},
                         {"object", {{"metadata", {{"resourceVersion", std::to_string(told)}}}}}});
      }
      if (lines.empty()) {
        changed.wait(lock);
        continue;
      }
      lock.unlock();
      for (const json& line : lines) {
        Send(stream, line);
      }
      lock.lock();
    }
    lock.unlock();
    text = "9\r\n{\"type\":\"\r\n";
    asio::write(stream, asio::buffer(text), error);
  }

  static std::vector<json> Unseen(const FakeApiStore::Collection& collection, uint64_t& told) {
    std::vector<json> lines;
    for (const FakeApiStore::Event& event : collection.history) {
      if (event.version > told) {
        lines.push_back({{"type", event.type}, {"object", event.object}});
        told = event.version;
      }
    }
    return lines;
  }

  void Send(Stream& stream, const json& line) const {
    const std::string text = line.dump() + "\n";
    const std::size_t step = in_pieces ? 7 : text.size();
    error_code error;
    for (std::size_t at = 0; at < text.size() && !error; at += step) {
      const std::string part = text.substr(at, step);
      std::ostringstream chunk;
      chunk << std::hex << part.size() << "\r\n" << part << "\r\n";
      const std::string bytes = chunk.str();
      asio::write(stream, asio::buffer(bytes), error);
    }
  }

  const TlsIdentity identity = MakeTlsIdentity();
  asio::io_context io;
  asio::ssl::context context{asio::ssl::context::tls_server};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::atomic<bool> stopped = false;
  std::atomic<bool> in_pieces = false;

  std::mutex mutex;
  std::condition_variable changed;
  FakeApiStore store;
  uint64_t forgotten = 0;
  uint64_t cuts = 0;
  uint64_t bookmarks = 0;
  std::string token;
  int refusals = 0;
  unsigned refusal_status = 0;
  int refusal_retry_after = 0;
  int lost_answers = 0;
  bool writes_held = false;
  int accepted = 0;
  std::vector<std::string> requests;
  std::set<int> sockets;
  std::list<std::thread> threads;
  std::thread acceptor_thread;
};

FakeApiServer::FakeApiServer() : impl_(std::make_unique<Impl>()) {}
FakeApiServer::~FakeApiServer() = default;

cluster::ClusterAccess FakeApiServer::access() const {
  const std::lock_guard lock(impl_->mutex);
  return {.server = {.host = "127.0.0.1",
                     .port = std::to_string(impl_->acceptor.local_endpoint().port())},
          .authorities = {.text = impl_->identity.certificate},
          .token = impl_->token};
}

std::string FakeApiServer::WriteKubeconfig(const std::string& directory) const {
  const cluster::ClusterAccess to = access();
  std::ofstream(directory + "/ca.crt") << to.authorities.text;
  std::ofstream(directory + "/kubeconfig") << fmt::format(
      "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], "
      "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', "
      "certificate-authority: ca.crt}}}}], users: [{{name: u, user: {{}}}}]}}\n",
      to.server.port);
  return directory + "/kubeconfig";
}

void FakeApiServer::SetToken(const std::string& token) {
  const std::lock_guard lock(impl_->mutex);
  impl_->token = token;
}

void FakeApiServer::Put(const std::string& collection, json object) {
  const std::lock_guard lock(impl_->mutex);
  const bool known = impl_->store.Of(collection).objects.contains(KeyOfObject(object));
  impl_->store.Store(collection, std::move(object), known ? "MODIFIED" : "ADDED");
  impl_->changed.notify_all();
}

void FakeApiServer::Delete(const std::string& collection, const std::string& key) {
  const std::lock_guard lock(impl_->mutex);
  impl_->store.Store(collection, json(impl_->store.Of(collection).objects.at(key)), "DELETED");
  impl_->changed.notify_all();
}

json FakeApiServer::Find(const std::string& collection, const std::string& key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto& objects = impl_->store.Of(collection).objects;
  const auto found = objects.find(key);
  return found == objects.end() ? json() : found->second;
}

void FakeApiServer::CutWatches() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->cuts;
  impl_->changed.notify_all();
}

void FakeApiServer::ForgetHistory() {
  const std::lock_guard lock(impl_->mutex);
  impl_->forgotten = impl_->store.Skip();
}

void FakeApiServer::DropHistory() {
  const std::lock_guard lock(impl_->mutex);
  impl_->store.DropHistory();
  impl_->requests.clear();
}

void FakeApiServer::SendBookmarks() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->bookmarks;
  impl_->changed.notify_all();
}

void FakeApiServer::RestoreTo(uint64_t version) {
  const std::lock_guard lock(impl_->mutex);
  impl_->store.RestoreTo(version);
  ++impl_->cuts;
  impl_->changed.notify_all();
}

uint64_t FakeApiServer::version() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->store.reached();
}

void FakeApiServer::SendInPieces() {
  impl_->in_pieces = true;
}

void FakeApiServer::Refuse(int count, unsigned status, int retry_after_seconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->refusals = count;
  impl_->refusal_status = status;
  impl_->refusal_retry_after = retry_after_seconds;
}

void FakeApiServer::LoseAnswers(int count) {
  const std::lock_guard lock(impl_->mutex);
  impl_->lost_answers = count;
}

void FakeApiServer::HoldWrites() {
  const std::lock_guard lock(impl_->mutex);
  impl_->writes_held = true;
}

void FakeApiServer::LetWritesGo() {
  const std::lock_guard lock(impl_->mutex);
  impl_->writes_held = false;
  impl_->changed.notify_all();
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

int FakeApiServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->accepted;
}

}  // namespace qrm::test
