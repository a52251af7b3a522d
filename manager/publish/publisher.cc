// Compares the state with the objects at each tick, and at once when a watch reports a change.
#include "manager/publish/publisher.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "cluster/list_watch.h"
#include "cluster/requests.h"
#include "manager/publish/node_topology.h"
#include "manager/publish/published_object.h"
#include "plugins/config/class_request.h"

namespace qrm::manager {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A pod that is still rejected so long after it was ended has not taken it.
constexpr std::chrono::seconds kEndedAgain{30};
/// The number of events that wait for the API server; the oldest are dropped first.
constexpr std::size_t kMostUntold = 100;
/// Between two tries of an event, doubled after each failure.
constexpr milliseconds kFirstEventBackoff{1000};
constexpr milliseconds kMostEventBackoff{10'000};

constexpr char kNodesPath[] = "/api/v1/nodes";
constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kManager[] = "qrmd";

/// A Node's annotations are limited to 256 KiB in total, and qrm-scheduler keeps this one of every
/// node.
constexpr std::size_t kMostConfigBytes = std::size_t{64} * 1024;

cluster::ListWatchOptions OnlyOne(const char* path, const std::string& name) {
  return {.path = path, .field_selector = "metadata.name=" + name};
}

/// The client of the API server and its watches, which are created and destroyed together.
struct Connection {
  Connection(boost::asio::io_context& io, cluster::ClusterAccess access)
      : client(io, std::move(access), {.user_agent = kManager}) {}

  cluster::ApiClient client;
  std::optional<cluster::ListWatch> node_watch;
  std::optional<cluster::ListWatch> topology_watch;
};

}  // namespace

struct Publisher::Impl {
  Impl(Parts publisher_parts, PublishOptions publish_options)
      : parts(std::move(publisher_parts)),
        options(std::move(publish_options)),
        name(NodeNameOf(options)),
        known(options.grace),
        events(name),
        node(io, "Node", options.interval, [this] { Settle(); }),
        topology(io, "NodeResourceTopology", options.interval, [this] { Settle(); }) {}

  bool IsOn() const { return !options.what.empty(); }
  bool WritesNode() const {
    return options.Has(kPublishResources) || options.Has(kPublishClasses) ||
           options.Has(kPublishClassResources) || options.Has(kPublishNodeConfig) ||
           options.Has(kPublishDrivers);
  }

  // All methods below run on the publisher's thread.
  void Tick();
  void Connect();
  void Refresh(steady_clock::time_point now);
  void Beat(steady_clock::time_point now);
  NodeWishes WishesOf(const AllocatableByResource& offered, const OfferedTypes& types) const;
  std::optional<std::string> ConfigText();
  void Settle();
  std::optional<cluster::ApiRequest> NodeRequest(const NodeWishes& wanted) const;
  std::optional<cluster::ApiRequest> TopologyRequest(const json& wanted) const;
  Status WatchTrouble() const;
  void RetryIfFollowedAgain();
  void Tell(const PodMessage& warning);
  void End(const PodMessage& why);
  void Queue(cluster::ApiRequest request);
  void TellNext();
  void TakeAnswer(const Status& answer);
  std::optional<cluster::ApiRequest> NextPodClasses();
  void NoteStatus();

  const Parts parts;
  const PublishOptions options;
  const std::string name;  // of the node

  boost::asio::io_context io{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard;
  boost::asio::steady_timer timer{io};
  KnownResources known;
  PodWarnings events;
  PublishedObject node;
  PublishedObject topology;
  Status access_problem;
  Status config_problem;
  Status event_problem;
  std::deque<cluster::ApiRequest> untold;  // events, oldest first; the first one may be under way
  bool telling = false;
  std::map<std::string, std::string> told_classes;        // pod UID -> annotation
  std::map<std::string, steady_clock::time_point> ended;  // pod UID -> when it was
  bool telling_classes = false;                           // `untold` begins with those of a pod
  uint64_t pod_writes = 0;
  milliseconds event_backoff{0};
  steady_clock::time_point next_event;
  bool followed = true;  // no watch was in trouble at the latest look
  uint64_t events_told = 0;
  uint64_t event_failures = 0;
  bool recalled = false;  // `known` has qrmd's resources on the Node from before this process
  bool in_grace = false;  // a published resource is not offered any more
  std::string beat;       // the latest sign of life
  steady_clock::time_point beaten;

  // The inputs of the latest Refresh, and its results.
  std::shared_ptr<const checkpoint::NodeState> state;
  std::shared_ptr<const AllocatableByResource> allocatable;
  std::shared_ptr<const OfferedTypes> types;
  CpuSet offline;
  std::optional<std::string> drivers;
  std::optional<NodeWishes> wishes;
  std::optional<json> wanted_topology;

  mutable Mutex mutex;
  PublishStatus status QRM_GUARDED_BY(mutex);

  std::optional<Connection> connection;
  std::thread thread;
};

void Publisher::Impl::Tick() {
  Connect();
  RetryIfFollowedAgain();
  Refresh(steady_clock::now());
  Beat(steady_clock::now());
  Settle();
  TellNext();
  NoteStatus();
  timer.expires_after(options.interval);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Tick();
    }
  });
}

void Publisher::Impl::Connect() {
  if (connection.has_value()) {
    return;
  }
  StatusOr<cluster::ClusterAccess> access = parts.access();
  if (!access.ok()) {
    if (access_problem.ok()) {
      log::Warning("cannot access the API server, so nothing is published",
                   {{"error", MessageOf(access.status())}});
    }
    access_problem = access.status();
    return;
  }
  access_problem = OkStatus();
  connection.emplace(io, *std::move(access));
  if (WritesNode() || options.Has(kPublishTopology)) {
    connection->node_watch.emplace(io, connection->client, OnlyOne(kNodesPath, name), node);
    connection->node_watch->Start();
  }
  if (options.Has(kPublishTopology)) {
    connection->topology_watch.emplace(io, connection->client, OnlyOne(kTopologiesPath, name),
                                       topology);
    connection->topology_watch->Start();
  }
}

NodeWishes Publisher::Impl::WishesOf(const AllocatableByResource& offered,
                                     const OfferedTypes& offered_types) const {
  NodeWishes made;
  if (options.Has(kPublishClassResources)) {
    made.extended_resources = ClassResourcesOf(offered_types);
  }
  if (options.Has(kPublishResources)) {
    made.extended_resources.merge(ExtendedResourcesOf(offered));
  }
  if (options.Has(kPublishClasses)) {
    made.classes = ClassesText(offered_types, parts.permissions());
  }
  return made;
}

void Publisher::Impl::Refresh(steady_clock::time_point now) {
  if (!parts.restored() || !node.known()) {
    return;
  }
  auto new_state = parts.snapshots.Load();
  auto new_allocatable = parts.allocatable();
  auto new_types = parts.types();
  CpuSet new_offline = parts.machine.OfflineNow();
  std::optional<std::string> new_drivers =
      options.Has(kPublishDrivers) ? std::optional(parts.drivers()) : std::nullopt;
  if (new_allocatable == nullptr ||
      (new_state == state && new_allocatable == allocatable && new_types == types &&
       new_offline == offline && new_drivers == drivers && !in_grace)) {
    return;
  }
  state = std::move(new_state);
  allocatable = std::move(new_allocatable);
  types = std::move(new_types);
  offline = std::move(new_offline);
  drivers = std::move(new_drivers);
  if (!std::exchange(recalled, true)) {
    known.Recall(OwnedResources(node.object()), now);
  }
  const AllocatableByResource offered = known.Join(*allocatable, now);
  in_grace = offered.size() > allocatable->size();
  auto wished = WishesOf(offered, *types);
  wished.config = ConfigText();
  wished.drivers = drivers;
  wishes = std::move(wished);
  wanted_topology = NodeTopologyOf({.state = *state,
                                    .machine = parts.machine,
                                    .allocatable = offered,
                                    .policy = parts.policy,
                                    .scope = parts.scope});
}

/// As often as kubelet writes an unchanged Node, so that the API server has no more to do.
void Publisher::Impl::Beat(steady_clock::time_point now) {
  const bool is_judged_by = options.Has(kPublishNodeConfig) || options.Has(kPublishClasses) ||
                            options.Has(kPublishDrivers);
  if (is_judged_by && (beat.empty() || now - beaten >= options.heartbeat)) {
    beat = cluster::MicroTime(std::chrono::system_clock::now());
    beaten = now;
  }
}

std::optional<std::string> Publisher::Impl::ConfigText() {
  config_problem = OkStatus();
  if (!options.Has(kPublishNodeConfig)) {
    return std::nullopt;
  }
  StatusOr<std::string> text = parts.config(*state, offline);
  if (text.ok() && text->size() > kMostConfigBytes) {
    text = Errorf(StatusCode::kResourceExhausted,
                  "cannot publish this node's configuration: it has {} bytes, at most {} are "
                  "allowed; shorten the sections of plugins",
                  text->size(), kMostConfigBytes);
  }
  config_problem = text.status();
  return text.ok() ? std::optional(*std::move(text)) : std::nullopt;
}

void Publisher::Impl::Settle() {
  if (!connection.has_value() || !wishes.has_value() || node.object().is_null()) {
    return;
  }
  if (WritesNode()) {
    wishes->published_at = beat;
    node.Settle(connection->client, NodeRequest(*wishes));
  }
  if (wanted_topology.has_value() && options.Has(kPublishTopology) && topology.known()) {
    topology.Settle(connection->client, TopologyRequest(*wanted_topology));
  }
}

std::optional<cluster::ApiRequest> Publisher::Impl::NodeRequest(const NodeWishes& wanted) const {
  const std::optional<json> patch = NodePatch(node.object(), wanted);
  const std::string path = std::string(kNodesPath) + "/" + cluster::PercentEncoded(name);
  return patch.has_value() ? std::optional(cluster::MergePatchRequest(path + "/status", *patch))
                           : std::nullopt;
}

std::optional<cluster::ApiRequest> Publisher::Impl::TopologyRequest(const json& wanted) const {
  json owner = {{"apiVersion", "v1"},
                {"kind", "Node"},
                {"name", name},
                {"uid", node.object().value(json::json_pointer("/metadata/uid"), "")}};
  const json owners = json::array({std::move(owner)});
  const json& object = topology.object();
  if (!object.is_null() && object.value("zones", json()) == wanted.at("zones") &&
      object.value("attributes", json()) == wanted.at("attributes") &&
      object.value(json::json_pointer("/metadata/ownerReferences"), json()) == owners) {
    return std::nullopt;
  }
  json applied = wanted;
  applied["apiVersion"] = "topology.node.k8s.io/v1alpha2";
  applied["kind"] = "NodeResourceTopology";
  applied["metadata"] = {{"name", name}, {"ownerReferences", owners}};
  const std::string path = std::string(kTopologiesPath) + "/" + cluster::PercentEncoded(name);
  return cluster::ApplyRequest(path, applied, kManager);
}

Status Publisher::Impl::WatchTrouble() const {
  Status trouble;
  if (connection.has_value()) {
    for (const auto* watch : {&connection->node_watch, &connection->topology_watch}) {
      trouble.Update(watch->has_value() ? (*watch)->status().trouble : OkStatus());
    }
  }
  return trouble;
}

// What failed while the API server did not answer is tried at once, not after the wait of its own.
void Publisher::Impl::RetryIfFollowedAgain() {
  const bool follows = WatchTrouble().ok();
  if (follows && !followed) {
    node.RetryNow();
    topology.RetryNow();
    next_event = {};
  }
  followed = follows;
}

void Publisher::Impl::Tell(const PodMessage& warning) {
  auto request = events.Take(
      warning, {.steady = steady_clock::now(), .wall = std::chrono::system_clock::now()});
  if (request.has_value()) {
    Queue(*std::move(request));
  }
}

/// Kubelet rejects it again and again until it sees the end.
void Publisher::Impl::End(const PodMessage& why) {
  const auto now = steady_clock::now();
  std::erase_if(ended, [&](const auto& pod) { return now - pod.second > kEndedAgain; });
  if (ended.emplace(why.pod_uid, now).second) {
    Queue(cluster::MergePatchRequest(
        cluster::PodPath(why.pod_namespace, why.pod_name) + "/status",
        {{"metadata", {{"uid", why.pod_uid}}},
         {"status", {{"phase", "Failed"}, {"reason", why.reason}, {"message", why.message}}}}));
  }
}

void Publisher::Impl::Queue(cluster::ApiRequest request) {
  untold.push_back(std::move(request));
  if (untold.size() > kMostUntold) {
    untold.erase(untold.begin() + (telling ? 1 : 0));
    ++event_failures;
  }
  TellNext();
}

void Publisher::Impl::TellNext() {
  if (telling || !connection.has_value() || steady_clock::now() < next_event) {
    return;
  }
  cluster::ApiClient& client = connection->client;
  if (untold.empty()) {
    auto of_pod = NextPodClasses();
    telling_classes = of_pod.has_value();
    if (!telling_classes) {
      return;
    }
    untold.push_back(*std::move(of_pod));
  }
  telling = true;
  client.Call(untold.front(), [this](const StatusOr<std::string>& body) {
    telling = false;
    TakeAnswer(body.status());
    TellNext();
  });
}

/// The classes of the next pod whose annotation differs; an event goes before it.
std::optional<cluster::ApiRequest> Publisher::Impl::NextPodClasses() {
  if (!options.Has(kPublishPodClasses) || !parts.restored()) {
    return std::nullopt;
  }
  const auto now = parts.snapshots.Load();
  const auto offered = parts.types();
  std::optional<cluster::ApiRequest> next;
  now->ForEachPod([&](const checkpoint::PodRecord& pod) {
    const checkpoint::PodMeta& meta = pod.meta;
    if (next.has_value() || IsStaticPod(meta)) {
      return;
    }
    const std::string text = PodClassesText(pod, *offered, parts.class_problems);
    // Another run may have written the annotation of a pod that asks for a class.
    const bool may_have = config::NamesClassType(meta.annotations);
    std::string& told = told_classes.try_emplace(meta.uid, may_have ? "?" : "").first->second;
    if (told != text) {
      told = text;
      next = cluster::MergePatchRequest(
          cluster::PodPath(meta.pod_namespace, meta.name) + "/status",
          {{"metadata",
            {{"uid", std::string(meta.uid)},
             {"annotations", {{kPodClassesAnnotation, text.empty() ? json() : json(text)}}}}}});
    }
  });
  std::erase_if(told_classes,
                [&](const auto& each) { return now->FindPod(each.first) == nullptr; });
  return next;
}

// Another try helps neither what is wrong, nor what is about a pod or namespace that is gone.
void Publisher::Impl::TakeAnswer(const Status& answer) {
  const bool is_final = answer.ok() || answer.code() == StatusCode::kInvalidArgument ||
                        answer.code() == StatusCode::kNotFound ||
                        answer.code() == StatusCode::kAborted;
  if (!answer.ok() && event_problem.ok()) {
    log::Warning("cannot publish about pods", {{"error", MessageOf(answer)}});
  } else if (answer.ok() && !event_problem.ok()) {
    log::Info("events, classes and ends of pods are published again");
  }
  ++(!answer.ok() ? event_failures : telling_classes ? pod_writes : events_told);
  event_problem = is_final ? OkStatus() : answer;
  event_backoff =
      is_final ? milliseconds(0)
               : std::clamp<milliseconds>(2 * event_backoff, kFirstEventBackoff, kMostEventBackoff);
  next_event = steady_clock::now() + event_backoff;
  if (is_final) {
    untold.pop_front();
    telling_classes = false;
  }
}

void Publisher::Impl::NoteStatus() {
  Status problem = access_problem;
  problem.Update(WatchTrouble());
  const bool reached = problem.ok();
  problem.Update(node.problem());
  problem.Update(topology.problem());
  problem.Update(config_problem);
  problem.Update(event_problem);
  if (problem.ok() && node.known() && node.object().is_null()) {
    problem = Errorf(StatusCode::kNotFound,
                     "there is no Node {}; set node-name to the name of this node's Node", name);
  }
  const MutexLock lock(mutex);
  status = {.enabled = true,
            .writes = node.writes() + topology.writes() + pod_writes,
            .failures = node.failures() + topology.failures() + event_failures,
            .events = events_told,
            .problem = MessageOf(problem),
            .reached = reached};
}

Publisher::Publisher(Parts parts, PublishOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}

Publisher::~Publisher() {
  Stop();
}

void Publisher::Start() {
  if (!impl_->IsOn()) {
    return;
  }
  impl_->guard.emplace(boost::asio::make_work_guard(impl_->io));
  boost::asio::post(impl_->io, [impl = impl_.get()] { impl->Tick(); });
  impl_->thread = std::thread([impl = impl_.get()] { impl->io.run(); });
}

void Publisher::Stop() {
  if (impl_->thread.joinable()) {
    impl_->io.stop();
    impl_->thread.join();
    impl_->connection.reset();
  }
}

void Publisher::Warn(PodMessage warning) {
  if (impl_->options.Has(kPublishEvents)) {
    boost::asio::post(impl_->io,
                      [impl = impl_.get(), warning = std::move(warning)] { impl->Tell(warning); });
  }
}

void Publisher::EndPod(PodMessage why) {
  if (impl_->options.Has(kPublishPodFailures)) {
    boost::asio::post(impl_->io, [impl = impl_.get(), why = std::move(why)] { impl->End(why); });
  }
}

PublishStatus Publisher::GetStatus() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

StatusOr<cluster::ClusterAccess> PublisherAccess(const PublishOptions& options) {
  if (!options.kubeconfig.empty()) {
    return cluster::ReadKubeconfig(options.kubeconfig, "");
  }
  return cluster::InClusterAccess(
      [](const std::string& variable) {
        const char* value = std::getenv(variable.c_str());
        return std::string(value == nullptr ? "" : value);
      },
      kServiceAccount);
}

}  // namespace qrm::manager
