// A small state machine: list pages, watch, then decide by how the watch ended.
#include "cluster/list_watch.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/resource_version.h"
#include "cluster/requests.h"

namespace qrm::cluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// What a watch must last for to be opened again without a wait.
constexpr std::chrono::seconds kHealthy{1};
constexpr std::chrono::seconds kListTimeout{60};

std::string VersionOf(const json& object) {
  return TextIn(PartOf(object, "metadata"), "resourceVersion");
}

}  // namespace

struct ListWatch::Impl final : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& io, ApiClient& api, ListWatchOptions list_options,
       ObjectListener& object_listener)
      : options(std::move(list_options)), client(api), listener(object_listener), timer(io) {}

  std::string Target(const std::string& query) const {
    return options.path + "?" + query +
           (options.field_selector.empty()
                ? std::string()
                : "&fieldSelector=" + PercentEncoded(options.field_selector));
  }

  /// Calls `next` with what the server answers, unless this was stopped.
  template <typename Next>
  void Get(const std::string& query, Next next) {
    client.Call({.path = Target(query),
                 .timeout = kListTimeout,
                 .most_answer_bytes = options.most_page_bytes},
                WhileItRuns(weak_from_this(), std::move(next)));
  }

  template <typename Change>
  auto Note(Change change) {
    const MutexLock lock(mutex);
    return change(status);
  }

  void List() {
    Note([](ListWatchStatus& now) { ++now.lists; });
    listener.OnListBegin();
    page_size = options.page_size;
    Page("");
  }

  void Page(const std::string& from) {
    const std::string rest = from.empty() ? std::string() : "&continue=" + PercentEncoded(from);
    Get(fmt::format("limit={}{}", page_size, rest),
        [from](Impl& self, const StatusOr<std::string>& body) { self.TakePage(from, body); });
  }

  void TakePage(const std::string& from, const StatusOr<std::string>& body) {
    if (body.status().code() == StatusCode::kResourceExhausted && page_size > 1) {
      page_size /= 2;
      Page(from);
      return;
    }
    if (!body.ok()) {
      Fail(body.status(), &Impl::List);
      return;
    }
    const StatusOr<json> page =
        ParseJsonList(*body, [this](const json& item) { listener.OnItem(item); });
    if (!page.ok() || VersionOf(*page).empty()) {
      Fail(Errorf(StatusCode::kUnavailable, "cannot list {}: the API server's answer {}; try again",
                  options.path, page.ok() ? "is not a list" : MessageOf(page.status())),
           &Impl::List);
      return;
    }
    const std::string next_page = TextIn(PartOf(*page, "metadata"), "continue");
    if (!next_page.empty()) {
      Page(next_page);
      return;
    }
    version = VersionOf(*page);
    listener.OnListEnd(version);
    Note([](ListWatchStatus& now) { now.listed = true; });
    Watch();
  }

  void Watch() {
    constexpr int kLeastSeconds = 300;
    Note([](ListWatchStatus& now) { ++now.watches; });
    std::uniform_int_distribution<int> seconds(kLeastSeconds, 2 * kLeastSeconds);
    began = steady_clock::now();
    told = false;
    stream =
        client.Stream({.path = Target(fmt::format(
                           "watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                           version, seconds(random))),
                       .silence = options.silence},
                      {.on_open = [this] { ClearTrouble(); },
                       .on_line = [this](std::string_view line) { TakeLine(line); },
                       .on_end = [this](const StreamEnd& end) { TakeEnd(end); }});
  }

  // Called by the stream, which does not outlive this.
  void TakeLine(std::string_view line) {
    const json event = ParseJson(line).value_or(json());
    const std::string type = TextIn(event, "type");
    const json& object = PartOf(event, "object");
    const std::string object_version = VersionOf(object);
    if (type == "ERROR") {
      TakeError(object);
      return;
    }
    if (object_version.empty()) {
      Fail(Errorf(StatusCode::kUnavailable,
                  "cannot watch {}: the API server sent something that is not an event: {}; "
                  "listing all again",
                  options.path, Quoted(line)),
           &Impl::List);
      return;
    }
    told = true;
    backoff = milliseconds(0);
    version = object_version;
    if (type == "BOOKMARK") {
      listener.OnVersion(version);
    } else if (type == "DELETED") {
      listener.OnDelete(object);
    } else {
      listener.OnSet(object);
    }
  }

  void TakeError(const json& object) {
    const json& code = PartOf(object, "code");
    const unsigned number = code.is_number_unsigned() ? code.get<unsigned>() : 0;
    TakeEnd({.status = ErrorOf("watch " + options.path, number, object.dump())});
  }

  void TakeEnd(const StreamEnd& end) {
    stream.reset();
    const bool lasted = steady_clock::now() - began >= kHealthy || told;
    const bool gone = end.status.code() == StatusCode::kOutOfRange;
    const bool silent = end.status.code() == StatusCode::kDeadlineExceeded && lasted;
    if (end.status.ok() && lasted) {
      backoff = milliseconds(0);
      Watch();
    } else if ((gone || silent) && lasted) {
      List();
    } else if (!end.status.ok() && lasted && !gone) {
      CheckVersion();  // it was cut: perhaps the server began again with older data
    } else {
      retry_after = end.retry_after;
      Fail(end.status.ok()
               ? Errorf(StatusCode::kUnavailable,
                        "cannot watch {}: the API server ends it at once; try again", options.path)
               : end.status,
           gone || silent ? &Impl::List : &Impl::CheckVersion);
    }
  }

  /// A watch from a version that the server does not have yet is silent for ever.
  void CheckVersion() {
    Get("limit=1", [](Impl& self, const StatusOr<std::string>& body) {
      const json page = ParseJson(body.value_or("")).value_or(json());
      const std::string newest = VersionOf(page);
      if (newest.empty()) {
        self.Fail(body.status(), &Impl::CheckVersion);
      } else if (CompareVersions(newest, self.version) < 0) {
        self.List();
      } else {
        self.Watch();
      }
    });
  }

  void Fail(const Status& why, void (Impl::*next)()) {
    stream.reset();
    const bool first = Note([&](ListWatchStatus& now) {
      now.trouble_since = now.trouble.ok() ? steady_clock::now() : now.trouble_since;
      return std::exchange(now.trouble, why).ok();
    });
    if (first) {
      log::Warning("objects of the cluster cannot be followed",
                   {{"path", options.path}, {"error", MessageOf(why)}});
    }
    backoff = std::min(backoff == milliseconds(0) ? options.first_backoff : 2 * backoff,
                       options.most_backoff);
    // Up to a half less, so that many clients do not return at once.
    const auto least = static_cast<int>(backoff.count() / 2);
    std::uniform_int_distribution<int> wait(least, static_cast<int>(backoff.count()));
    timer.expires_after(
        std::max<milliseconds>(milliseconds(wait(random)),
                               std::exchange(retry_after, {}).value_or(std::chrono::seconds(0))));
    timer.async_wait(
        WhileItRuns(weak_from_this(), [next](Impl& self, const boost::system::error_code& error) {
          if (!error) {
            (self.*next)();
          }
        }));
  }

  void ClearTrouble() {
    const bool was_bad =
        Note([](ListWatchStatus& now) { return !std::exchange(now.trouble, OkStatus()).ok(); });
    if (was_bad) {
      log::Info("objects of the cluster are followed again", {{"path", options.path}});
    }
  }

  const ListWatchOptions options;
  ApiClient& client;
  ObjectListener& listener;
  boost::asio::steady_timer timer;
  std::minstd_rand random{std::random_device()()};
  std::unique_ptr<ApiStream> stream;
  std::string version;  // up to which all events were reported
  int page_size = 0;    // of the list under way
  milliseconds backoff{0};
  std::optional<std::chrono::seconds> retry_after;
  steady_clock::time_point began;  // of the watch
  bool told = false;               // it has reported something
  bool stopped = false;
  mutable Mutex mutex;
  ListWatchStatus status QRM_GUARDED_BY(mutex);
};

ListWatch::ListWatch(boost::asio::io_context& io, ApiClient& client, ListWatchOptions options,
                     ObjectListener& listener)
    : impl_(std::make_shared<Impl>(io, client, std::move(options), listener)) {}

ListWatch::~ListWatch() {
  impl_->stopped = true;
  impl_->stream.reset();
}

void ListWatch::Start() {
  impl_->List();
}

ListWatchStatus ListWatch::status() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

}  // namespace qrm::cluster
