// Keeps idle connections, and sends again what may be sent again.
#include "cluster/api_client.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/http/https_connection.h"
#include "cluster/credentials.h"
#include "cluster/line_buffer.h"

namespace qrm::cluster {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ConnectionPtr = std::shared_ptr<HttpsConnection>;

constexpr unsigned kOk = 200;
constexpr unsigned kUnauthorized = 401;
constexpr unsigned kTooMany = 429;
constexpr unsigned kFirstError = 300;
/// Less than what servers and the balancers before them wait for a next request.
constexpr std::chrono::seconds kIdle{30};
constexpr std::chrono::seconds kWaitWhenTooMany{1};

struct IdleConnection {
  ConnectionPtr connection;
  steady_clock::time_point since;
};

/// A request under way.
struct Job {
  ApiRequest request;
  ApiClient::Done done;
  steady_clock::time_point deadline;
  bool token_was_refused = false;
};

milliseconds LeftUntil(steady_clock::time_point deadline) {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

StatusCode CodeOf(unsigned status) {
  switch (status) {
    case 400:
    case 422:
      return StatusCode::kInvalidArgument;
    case kUnauthorized:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 409:
      return StatusCode::kAborted;
    case 410:
      return StatusCode::kOutOfRange;
    default:
      return StatusCode::kUnavailable;
  }
}

const char* RemedyFor(StatusCode code) {
  switch (code) {
    case StatusCode::kUnauthenticated:
      return "give us a valid token or certificate";
    case StatusCode::kPermissionDenied:
      return "allow it to our account by a ClusterRole";
    case StatusCode::kNotFound:
      return "look whether it exists";
    case StatusCode::kInvalidArgument:
      return "correct what is sent";
    case StatusCode::kOutOfRange:
      return "list all again";
    default:
      return "try again";
  }
}

}  // namespace

Status ErrorOf(const std::string& what, unsigned status, const std::string& body) {
  const std::string message = TextIn(ParseJson(body).value_or(nlohmann::json()), "message");
  const StatusCode code = CodeOf(status);
  return Errorf(code, "cannot {}: the API server answers {}{}{}; {}", what, status,
                message.empty() ? "" : ": ", Quoted(message), RemedyFor(code));
}

struct ApiClient::Impl final : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& loop, ClusterAccess access, Options client_options)
      : io(loop), options(std::move(client_options)), credentials(std::move(access)) {}

  using OnConnection = std::function<void(StatusOr<ConnectionPtr>)>;
  using JobPtr = std::shared_ptr<Job>;

  void Connect(milliseconds timeout, const OnConnection& done) {
    StatusOr<std::shared_ptr<asio::ssl::context>> tls = credentials.Tls();
    if (!tls.ok()) {
      asio::post(io, [done, status = tls.status()] { done(status); });
      return;
    }
    const auto connection = std::make_shared<HttpsConnection>(
        io, HttpsPeer{.url = credentials.access().server,
                      .certified_name = credentials.access().server_name,
                      .tls = *std::move(tls)});
    connection->Open(timeout, [connection, done](const Status& opened) {
      if (opened.ok()) {
        done(connection);
      } else {
        done(opened);
      }
    });
  }

  void Start(const JobPtr& job) {
    if (busy >= options.connections) {
      waiting.push_back(job);
      return;
    }
    ++busy;
    Run(job);
  }

  void Run(const JobPtr& job) {
    const auto now = steady_clock::now();
    std::erase_if(idle, [&](const IdleConnection& entry) { return now - entry.since > kIdle; });
    if (!idle.empty()) {
      const ConnectionPtr connection = std::move(idle.back().connection);
      idle.pop_back();
      Send(job, connection, job->request.method != "POST");
      return;
    }
    Connect(LeftUntil(job->deadline),
            [self = shared_from_this(), job](const StatusOr<ConnectionPtr>& connection) {
              if (connection.ok()) {
                self->Send(job, *connection, /*may_repeat=*/false);
              } else {
                self->Finish(job, connection.status());
              }
            });
  }

  StatusOr<HttpsMessage> MessageFor(const ApiRequest& request) {
    QRM_ASSIGN_OR_RETURN(std::string token, credentials.Token());
    return HttpsMessage{.method = request.method,
                        .target = request.path,
                        .bearer_token = std::move(token),
                        .content_type = request.content_type,
                        .body = request.body,
                        .user_agent = options.user_agent,
                        .most_answer_bytes = request.most_answer_bytes};
  }

  /// `may_repeat`: the server may have closed the connection while it was idle.
  void Send(const JobPtr& job, const ConnectionPtr& connection, bool may_repeat) {
    StatusOr<HttpsMessage> message = MessageFor(job->request);
    if (!message.ok()) {
      asio::post(io, [self = shared_from_this(), job, status = message.status()] {
        self->Finish(job, status);
      });
      return;
    }
    connection->Call(
        *std::move(message), LeftUntil(job->deadline),
        [self = shared_from_this(), job, connection,
         may_repeat](const StatusOr<HttpsAnswer>& answer) {
          if (connection->reusable()) {
            self->idle.push_back({connection, steady_clock::now()});
          }
          if (!answer.ok() && may_repeat && answer.status().code() == StatusCode::kUnavailable) {
            self->Run(job);
          } else {
            self->Take(job, answer);
          }
        });
  }

  void Take(const JobPtr& job, const StatusOr<HttpsAnswer>& answer) {
    if (!answer.ok()) {
      Finish(job, answer.status());
      return;
    }
    if (answer->status < kFirstError) {
      Finish(job, answer->body);
      return;
    }
    if (answer->status == kUnauthorized && !std::exchange(job->token_was_refused, true)) {
      credentials.DropToken();
      Run(job);
      return;
    }
    const auto wait = answer->retry_after.value_or(kWaitWhenTooMany);
    if (answer->status == kTooMany && steady_clock::now() + wait < job->deadline) {
      RunAfter(wait, job);
      return;
    }
    Finish(job,
           ErrorOf(job->request.method + " " + job->request.path, answer->status, answer->body));
  }

  void RunAfter(std::chrono::seconds wait, const JobPtr& job) {
    const auto timer = std::make_shared<asio::steady_timer>(io, wait);
    timer->async_wait([self = shared_from_this(), job, timer](const boost::system::error_code&) {
      self->Run(job);
    });
  }

  void Finish(const JobPtr& job, StatusOr<std::string> result) {
    --busy;
    if (!waiting.empty()) {
      const JobPtr next = std::move(waiting.front());
      waiting.pop_front();
      Start(next);
    }
    if (!stopped) {
      job->done(std::move(result));
    }
  }

  asio::io_context& io;
  const Options options;
  Credentials credentials;
  std::vector<IdleConnection> idle;
  std::deque<JobPtr> waiting;
  std::size_t busy = 0;
  bool stopped = false;
};

/// Outlives its ApiStream until what is in flight has ended.
struct ApiStream::Reading final : std::enable_shared_from_this<Reading> {
  Reading(ApiStream::Options stream_options, StreamListener stream_listener)
      : options(std::move(stream_options)), listener(std::move(stream_listener)) {}

  void Begin(const ConnectionPtr& opened, HttpsMessage message) {
    connection = opened;
    connection->Begin(std::move(message), options.timeout,
                      [self = shared_from_this()](const StatusOr<HttpsAnswer>& head) {
                        if (!head.ok()) {
                          self->End({.status = head.status()});
                          return;
                        }
                        self->answer = *head;
                        if (head->status == kOk && !self->stopped) {
                          self->listener.on_open();
                        }
                        self->Read();
                      });
  }

  void Read() {
    if (stopped) {
      return;
    }
    connection->ReadSome(
        options.silence,
        [self = shared_from_this()](const StatusOr<std::string>& part) { self->Take(part); });
  }

  void Take(const StatusOr<std::string>& part) {
    constexpr std::size_t kMostErrorBytes = std::size_t{64} << 10;
    if (stopped) {
      return;
    }
    if (!part.ok()) {
      End({.status = part.status()});
    } else if (answer.status != kOk) {
      answer.body += *part;
      if (part->empty() || answer.body.size() > kMostErrorBytes) {
        End({.status = ErrorOf("GET " + options.path, answer.status, answer.body),
             .retry_after = answer.retry_after});
        return;
      }
      Read();
    } else if (part->empty()) {
      End({});
    } else if (!lines.Append(*part, [this](std::string_view line) { Tell(line); })) {
      End({.status = Errorf(StatusCode::kUnavailable,
                            "cannot read {}: a line has more than {} bytes; try again",
                            options.path, LineBuffer::kMostBytes)});
    } else {
      Read();
    }
  }

  void Tell(std::string_view line) const {
    if (!stopped) {
      listener.on_line(line);
    }
  }

  void End(const StreamEnd& end) {
    if (!std::exchange(stopped, true)) {
      listener.on_end(end);
    }
  }

  const ApiStream::Options options;
  const StreamListener listener;
  ConnectionPtr connection;
  HttpsAnswer answer;
  LineBuffer lines;
  bool stopped = false;
};

ApiStream::~ApiStream() {
  reading_->stopped = true;
  if (reading_->connection != nullptr) {
    reading_->connection->Close();
  }
}

ApiClient::ApiClient(asio::io_context& io, ClusterAccess access, Options options)
    : impl_(std::make_shared<Impl>(io, std::move(access), std::move(options))) {}

ApiClient::~ApiClient() {
  impl_->stopped = true;
  impl_->waiting.clear();
}

const ClusterAccess& ApiClient::access() const {
  return impl_->credentials.access();
}

void ApiClient::Call(ApiRequest request, Done done) {
  const auto deadline = steady_clock::now() + request.timeout;
  impl_->Start(std::make_shared<Job>(
      Job{.request = std::move(request), .done = std::move(done), .deadline = deadline}));
}

std::unique_ptr<ApiStream> ApiClient::Stream(ApiStream::Options options, StreamListener listener) {
  auto reading = std::make_shared<ApiStream::Reading>(std::move(options), std::move(listener));
  impl_->Connect(
      reading->options.timeout, [impl = impl_, reading](const StatusOr<ConnectionPtr>& connection) {
        StatusOr<HttpsMessage> message = impl->MessageFor({.path = reading->options.path});
        const Status ready = connection.ok() ? message.status() : connection.status();
        if (!ready.ok()) {
          reading->End({.status = ready});
        } else if (!reading->stopped) {
          reading->Begin(*connection, *std::move(message));
        }
      });
  return std::unique_ptr<ApiStream>(new ApiStream(std::move(reading)));
}

}  // namespace qrm::cluster
