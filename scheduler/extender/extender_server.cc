// Wires the parts, and starts and stops their threads.
#include "scheduler/extender/extender_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "api/base/rejected.h"
#include "api/http/http_address.h"
#include "api/http/http_listener.h"
#include "cluster/lease_election.h"
#include "scheduler/cache/filter.h"
#include "scheduler/extender/call_guard.h"
#include "scheduler/extender/cluster_feed.h"
#include "scheduler/extender/comparer.h"
#include "scheduler/extender/extender.h"
#include "scheduler/extender/why.h"

namespace qrm::scheduler {
namespace {

namespace asio = boost::asio;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kNotFound = 404;
constexpr int kNotAllowed = 405;
constexpr int kUnavailable = 503;
constexpr char kWhy[] = "/why?pod=";
constexpr char kJson[] = "application/json";
constexpr seconds kBeat{1};
constexpr seconds kDead{30};
/// By a resource, of the cache's writer.
constexpr seconds kMostKept{10};

/// A pod may have 1.5 MB, and 15,000 names come with it.
constexpr HttpRules kCallRules{
    .most_body_bytes = std::size_t{8} << 20,
    .after_answer = HttpRules::AfterAnswer::kKeepOpen,
    .connections = {.total = 512, .per_peer = 256, .body_bytes = std::size_t{16} << 20}};

/// Of this process and no other.
std::string MakeIdentity() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host.data(), random(), random());
}

prometheus::MetricFamily Counter(const char* name, const char* help) {
  return {name, help, prometheus::MetricType::Counter, {}};
}

void AddCount(prometheus::MetricFamily& family, std::vector<prometheus::ClientMetric::Label> labels,
              uint64_t count) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = static_cast<double>(count);
  family.metric.push_back(std::move(metric));
}

}  // namespace

struct ExtenderServer::Impl {
  Impl(ServeOptions server_options, cluster::ClusterAccess access)
      : options(std::move(server_options)),
        client(cluster_io, std::move(access), {.user_agent = "qrm-scheduler", .connections = 16}) {}
  // NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Start() {
    QRM_ASSIGN_OR_RETURN(handles, HandlesOf(options)());
    QRM_ASSIGN_OR_RETURN(cache, SchedulerCache::Make(handles));
    QRM_ASSIGN_OR_RETURN(feed, ClusterFeed::Make(cluster_io, client, *cache));
    binder = std::make_unique<Binder>(
        Binder::Peers{cluster_io, client, *cache}, [this] { return MayBind(); },
        Binder::Options{.answer_within = options.bind_timeout});
    waker = std::make_unique<Waker>(
        Waker::Peers{cluster_io, client, *cache, metrics},
        Waker::Options{.may_preempt = [this] { return options.preemption && MayBind().ok(); }});
    extender = std::make_unique<Extender>(
        Extender::Peers{*cache, *binder, metrics, *waker},
        [this] { return feed->CheckFresh(options.stale_after); },
        Extender::Options{.call_timeout = options.call_timeout});
    comparer = std::make_unique<Comparer>(*cache, client.access(), HandlesOf(options));
    QRM_RETURN_IF_ERROR(Listen());
    MakeElection();
    asio::post(cluster_io, [this] {
      feed->Start();
      waker->Start();
      if (election != nullptr) {
        election->Start();
      }
      Beat();
    });
    cluster_thread = std::thread([this] { cluster_io.run(); });
    WatchWriter();
    http_thread = std::thread([this] { http_io.run(); });
    return OkStatus();
  }

  Status Listen() {
    if (!options.certificate_file.empty()) {
      tls = std::make_shared<TlsFiles>(options.certificate_file, options.key_file,
                                       options.client_ca_file);
      tls->Load();  // what is wrong with them is logged now
    }
    QRM_ASSIGN_OR_RETURN(const HttpAddress address, ParseHttpAddress(options.address));
    QRM_RETURN_IF_ERROR(calls.Listen(address, "address", {.tls = tls}));
    if (options.monitor_address.empty()) {
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(const HttpAddress monitors, ParseHttpAddress(options.monitor_address));
    return monitor.Listen(monitors, "monitor-address");
  }

  void MakeElection() {
    if (options.lease_name.empty()) {
      return;
    }
    const std::string& space = options.lease_namespace;
    election = std::make_unique<cluster::LeaseElection>(
        cluster_io, client,
        cluster::LeaseElection::Options{
            .lease_namespace = space.empty() ? client.access().default_namespace : space,
            .name = options.lease_name,
            .identity = MakeIdentity()},
        // Who led before us may have bound pods until now.
        [this] { feed->ListPodsAnew(); });
  }

  Status MayBind() const {
    if (election != nullptr && !election->Leads()) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot bind: another qrm-scheduler holds lease {}; try again in a moment",
                    options.lease_name);
    }
    return feed->CheckPodsListed();
  }

  /// On the port's thread.
  void Take(HttpQuestion question, HttpReply reply) {
    const std::string name = NameInHost(question.host);
    const bool is_ours = IsLocalName(name) || (tls != nullptr && tls->IsFor(name));
    if (std::optional<HttpAnswer> refusal = RefusalOfBrowsers(question, is_ours)) {
      Reject(Rejected::kWebPage, refusal->body.substr(0, refusal->body.find('\n')));
      reply(*std::move(refusal));
      return;
    }
    asio::post(pool, [this, question = std::move(question), reply = std::move(reply)] {
      Ask(question, reply);
    });
  }

  /// On the pool.
  void Ask(const HttpQuestion& question, const HttpReply& reply) {
    const std::string& target = question.target;
    const bool reads = target == "/dump" || target == "/dump?compare" || target.starts_with(kWhy);
    const bool known = reads || target == "/filter" || target == "/prioritize" ||
                       target == "/bind" || target == "/preempt";
    if (!known) {
      reply({kNotFound, "try /filter, /prioritize, /bind, /preempt, /dump or /why?pod=NAME\n"});
    } else if (question.method != (reads ? "GET" : "POST")) {
      reply({kNotAllowed, reads ? "only GET is served here\n" : "only POST is served here\n"});
    } else if (target == "/filter") {
      Judge(question.body, reply, &Extender::Filter);
    } else if (target == "/prioritize") {
      Judge(question.body, reply, &Extender::Prioritize);
    } else if (target == "/preempt") {
      reply({.body = extender->Preempt(question.body), .type = kJson});
    } else if (target == "/bind") {
      Bind(question.body, reply);
    } else if (target.starts_with(kWhy)) {
      reply(Why(target.substr(std::string_view(kWhy).size())));
    } else if (target == "/dump") {
      reply({.body = cache->Dump(), .type = kJson});
    } else {
      comparer->Compare(reply);
    }
  }

  using Verb = std::string (Extender::*)(const std::string& body, HandleCall& call);
  /// A call about nodes, which one of two threads answers.
  struct Judging {
    std::string body;
    HttpReply reply;
    Verb verb;
    HandleCall call;
    std::atomic<bool> answered{false};
  };

  /// A call that a resource does not return from is answered without the resource: on another
  /// thread, and once more from the beginning.
  void Judge(const std::string& body, const HttpReply& reply, Verb verb) {
    const auto judging = std::make_shared<Judging>();
    judging->body = body;
    judging->reply = reply;
    judging->verb = verb;
    const auto timer = std::make_shared<asio::steady_timer>(http_io, options.call_timeout);
    timer->async_wait([this, timer, judging](const boost::system::error_code&) {
      if (!judging->answered && !handles.guard().NoteLate(judging->call).empty() &&
          !judging->answered.exchange(true)) {
        spare_threads.emplace_back([this] { pool.attach(); });
        asio::post(pool, [this, judging] { Judge(judging->body, judging->reply, judging->verb); });
      }
    });
    std::string json = (extender.get()->*verb)(body, judging->call);
    if (!judging->answered.exchange(true)) {
      std::exchange(judging->reply, nullptr)({.body = std::move(json), .type = kJson});
      judging->body.clear();
    }
  }

  /// Each second, whether a resource keeps the cache's writer: then nothing else can be done.
  void WatchWriter() {
    const HandleCall& writer = handles.guard().writer();
    const uint64_t number = writer.number;
    const std::string* const type = writer.type;
    kept_by = type != nullptr && number == watched && number == writer.number ? type : nullptr;
    kept_for = kept_by == nullptr ? seconds(0) : kept_for + kBeat;
    watched = number;
    writer_timer.expires_after(kBeat);
    writer_timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        WatchWriter();
      }
    });
  }

  void Bind(const std::string& body, const HttpReply& reply) {
    if (const Status may = MayBind(); !may.ok()) {
      reply({.body = WriteBind(may), .type = kJson});
      return;
    }
    extender->Bind(body,
                   [reply](std::string json) { reply({.body = std::move(json), .type = kJson}); });
  }

  HttpAnswer Why(const std::string& pod) {
    const Status fresh = feed->CheckFresh(options.stale_after);
    const StatusOr<nlohmann::json> why =
        fresh.ok() ? WhyPodWaits(*cache, pod) : StatusOr<nlohmann::json>(fresh);
    if (why.ok()) {
      return {.body = EscapedJson(why->dump(2)) + "\n", .type = kJson};
    }
    const bool waits = why.status().code() == StatusCode::kUnavailable;
    return {waits ? kUnavailable : kNotFound, MessageOf(why.status()) + "\n"};
  }

  template <typename Work>
  void OnClusterLoop(Work work) {
    std::promise<void> done;
    asio::post(cluster_io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  HttpAnswer Tell(std::string_view path) {
    if (path == "/metrics") {
      return {.body = Metrics(), .type = "text/plain; version=0.0.4; charset=utf-8"};
    }
    if (path == "/healthz" && kept_for >= kMostKept) {
      return {kUnavailable, fmt::format("the resource {} has kept the cache for {} s\n", *kept_by,
                                        kept_for.count())};
    }
    if (path == "/healthz") {
      const bool alive = steady_clock::now().time_since_epoch() - beat.load() < kDead;
      return alive ? HttpAnswer{.body = "ok\n"}
                   : HttpAnswer{kUnavailable, "the thread for the API server stands still\n"};
    }
    if (path == "/readyz") {
      Status ready = CheckSynced(*cache->Load());
      ready = ready.ok() ? feed->CheckFresh(options.stale_after) : ready;
      ready = ready.ok() ? MayBind() : ready;
      return ready.ok() ? HttpAnswer{.body = "ok\n"}
                        : HttpAnswer{kUnavailable, MessageOf(ready) + "\n"};
    }
    return {kNotFound, "try /metrics, /healthz or /readyz\n"};
  }

  std::string Metrics() const {
    auto lists =
        Counter("qrm_scheduler_lists_total", "Lists of all objects that were begun, by kind.");
    auto watches = Counter("qrm_scheduler_watches_total", "Watches that were opened, by kind.");
    for (const auto& [kind, status] : feed->statuses()) {
      AddCount(lists, {{"kind", kind}}, status.lists);
      AddCount(watches, {{"kind", kind}}, status.watches);
    }
    auto rejected = Counter("qrm_scheduler_rejected_inputs_total",
                            "Clients, requests and texts that were turned away, by kind.");
    for (const RejectedCount& each : RejectedByKind(RejectedBy::kScheduler)) {
      AddCount(rejected, {{"kind", std::string(each.kind)}}, each.count);
    }
    auto failures = Counter("qrm_scheduler_resource_failures_total",
                            "Calls of a resource's code that threw, or were blocked: did not "
                            "return within call-timeout.");
    auto unknown = Counter("qrm_scheduler_unknown_nodes_total",
                           "Nodes that were judged although they have not reported a resource "
                           "that the pod requests, or their qrmd is silent.");
    for (const auto& [type, count] : handles.guard().counts()) {
      AddCount(failures, {{"resource", type}, {"kind", "threw"}}, count.threw);
      AddCount(failures, {{"resource", type}, {"kind", "blocked"}}, count.blocked);
      AddCount(unknown, {{"resource", type}}, count.unknown);
    }
    std::vector<prometheus::MetricFamily> families = registry.Collect();
    for (prometheus::MetricFamily* family : {&lists, &watches, &rejected, &failures, &unknown}) {
      families.push_back(std::move(*family));
    }
    return prometheus::TextSerializer().Serialize(families);
  }

  void Beat() {
    beat = steady_clock::now().time_since_epoch();
    if (binder != nullptr && binder->TakeUnconfirmed(options.stale_after)) {  // null: it stops
      log::Warning("binding accepted and not shown: listing all pods again");
      feed->ListPodsAnew();
    }
    beat_timer.expires_after(kBeat);
    beat_timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        Beat();
      }
    });
  }

  void Stop() {
    if (!http_thread.joinable()) {
      return;
    }
    http_io.stop();
    http_thread.join();
    pool.join();
    for (std::thread& spare : spare_threads) {
      spare.join();
    }
    comparer.reset();
    const auto end = steady_clock::now() + options.bind_timeout;
    while (binder->in_flight() > 0 && steady_clock::now() < end) {
      std::this_thread::sleep_for(kBeat / 20);
    }
    if (election != nullptr && binder->in_flight() == 0) {
      std::promise<void> released;
      asio::post(cluster_io, [&] { election->Release([&] { released.set_value(); }); });
      released.get_future().wait();
    }
    OnClusterLoop([this] {
      election.reset();
      waker.reset();
      binder.reset();
      feed.reset();
    });
    cluster_io.stop();
    cluster_thread.join();
  }

  const ServeOptions options;
  HandleRegistry handles;
  asio::io_context cluster_io{1};
  std::unique_ptr<SchedulerCache> cache;
  prometheus::Registry registry;
  ExtenderMetrics metrics{registry};
  std::atomic<steady_clock::duration> beat{steady_clock::now().time_since_epoch()};

  asio::executor_work_guard<asio::io_context::executor_type> cluster_work{
      asio::make_work_guard(cluster_io)};
  asio::steady_timer beat_timer{cluster_io};
  cluster::ApiClient client;
  std::unique_ptr<ClusterFeed> feed;
  std::unique_ptr<cluster::LeaseElection> election;  // null: no lease
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Waker> waker;
  std::unique_ptr<Extender> extender;
  std::unique_ptr<Comparer> comparer;

  std::shared_ptr<TlsFiles> tls;  // null: without TLS
  asio::thread_pool pool{2};
  asio::io_context http_io{1};
  // Of the HTTP thread:
  std::vector<std::thread> spare_threads;  // in place of blocked ones of the pool
  asio::steady_timer writer_timer{http_io};
  uint64_t watched = 0;                  // number of the writer's call
  const std::string* kept_by = nullptr;  // type of the resource
  seconds kept_for{0};
  HttpListener calls{http_io,
                     [this](HttpQuestion question, HttpReply reply) {
                       Take(std::move(question), std::move(reply));
                     },
                     kCallRules};
  HttpListener monitor{http_io, AnswerGet([this](std::string_view path) { return Tell(path); })};
  std::thread cluster_thread;
  std::thread http_thread;
};

StatusOr<std::unique_ptr<ExtenderServer>> ExtenderServer::Start(const ServeOptions& options,
                                                                cluster::ClusterAccess access) {
  auto impl = std::make_unique<Impl>(options, std::move(access));
  QRM_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<ExtenderServer>(new ExtenderServer(std::move(impl)));
}

ExtenderServer::ExtenderServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExtenderServer::~ExtenderServer() = default;

int ExtenderServer::port() const {
  return impl_->calls.port();
}

int ExtenderServer::monitor_port() const {
  return impl_->monitor.port();
}

}  // namespace qrm::scheduler
