// Pods that ask for classes, on a node whose types, classes, capacities, permissions and providers
// change, fail and come back, and whose qrmd is killed: after each of many random steps, each
// container has what it was promised, or is marked. QRM_CLASS_STEPS sets the number of steps.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_change.h"
#include "manager/classes/class_keeper.h"
#include "test/manager/admission/admitter_fixture.h"
#include "test/support/is_ok.h"
#include "test/support/rounds.h"

namespace qrm::manager::class_walk_test {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using placement::ContainerDemand;
using sdk::ClassLevel;
using test::IsOk;

constexpr char kDisk[] = "blockio";
constexpr char kScore[] = "oom";
constexpr char kOfPods[] = "memory-protection";
constexpr char kPlugins[] = "lanes.example.com";
constexpr char kAnchor[] = "anchor";  // the class of a pod that no step touches

/// One type as the machine, or a plugin, has it.
struct MachineType {
  ClassLevel level = ClassLevel::kContainer;
  bool is_mutable = true;
  bool by_runtime = false;  // the runtime creates containers with their class
  std::set<std::string> classes = {"fast", "slow"};
  std::string problem;
  bool fails = false;                      // each change of a container
  std::map<std::string, std::string> has;  // runtime id -> class
};

/// The kernel and the plugins, which outlive qrmd. Threads: any.
class Kernel {
 public:
  template <typename Work>
  auto At(const std::string& type, Work work) {
    const MutexLock lock(mutex_);
    return work(types_.at(type));
  }
  std::vector<std::string> Names() const { return {kDisk, kPlugins, kOfPods, kScore}; }

 private:
  Mutex mutex_;
  std::map<std::string, MachineType> types_ QRM_GUARDED_BY(mutex_) = {
      {kDisk, {}},
      {kPlugins, {}},
      {kOfPods, {.level = ClassLevel::kPod}},
      {kScore, {.is_mutable = false, .by_runtime = true}}};
};

/// A type in one run of qrmd; a retired one has no classes.
class Provider final : public sdk::ClassProvider {
 public:
  Provider(Kernel& kernel, std::string name, bool retired)
      : kernel_(kernel), name_(std::move(name)), retired_(retired) {}

  [[nodiscard]] sdk::ClassType List() const override {
    return kernel_.At(name_, [&](const MachineType& type) {
      sdk::ClassType listed{.name = name_,
                            .level = type.level,
                            .is_mutable = type.is_mutable,
                            .problem = retired_ ? "" : type.problem};
      for (const std::string& name : retired_ ? std::set<std::string>() : type.classes) {
        listed.classes.push_back({.name = name});
      }
      listed.classes.push_back({.name = kAnchor});
      return listed;
    });
  }
  [[nodiscard]] StatusOr<sdk::ClassOptions> Resolve(const std::string& name) const override {
    return kernel_.At(name_, [&](const MachineType& type) -> StatusOr<sdk::ClassOptions> {
      QRM_RETURN_IF_ERROR(Check(type, name));
      return type.by_runtime ? sdk::ClassOptions{.unified = {{name_, name}}} : sdk::ClassOptions();
    });
  }
  Status Refresh(const std::set<std::string>& /*in_use*/) override {
    return kernel_.At(name_, [&](const MachineType& type) {
      return retired_ || type.problem.empty() ? OkStatus()
                                              : Status(StatusCode::kUnavailable, type.problem);
    });
  }
  Status Apply(const sdk::ClassTarget& target, const std::string& /*from*/,
               const std::string& to) override {
    return kernel_.At(name_, [&](MachineType& type) {
      QRM_RETURN_IF_ERROR(Check(type, to));
      if (type.fails) {
        return Status(StatusCode::kUnavailable, "the kernel is busy");
      }
      type.has[target.runtime_id] = to;
      return OkStatus();
    });
  }
  [[nodiscard]] StatusOr<std::string> ReadBack(const sdk::ClassTarget& target,
                                               const std::string& name) override {
    return kernel_.At(name_, [&](MachineType& type) -> StatusOr<std::string> {
      QRM_RETURN_IF_ERROR(Check(type, name));
      const std::string& has = type.has[target.runtime_id];
      return has == name ? std::string() : "it has " + has;
    });
  }

 private:
  Status Check(const MachineType& type, const std::string& name) const {
    if (!retired_ && !type.problem.empty()) {
      return {StatusCode::kUnavailable, type.problem};
    }
    return name.empty() || name == kAnchor || (!retired_ && type.classes.contains(name))
               ? OkStatus()
               : Status(StatusCode::kFailedPrecondition, "there is no class " + name);
  }

  Kernel& kernel_;
  const std::string name_;
  const bool retired_;
};

/// What was committed, which outlives qrmd.
class KeptStore final : public checkpoint::Store {
 public:
  explicit KeptStore(NodeState& kept) : kept_(kept) {}
  Status Commit(const checkpoint::Change& change) override {
    kept_ = kept_.With(change);
    return OkStatus();
  }
  Status Remember(const checkpoint::Change& change) override { return Commit(change); }
  const NodeState& state() const override { return kept_; }

 private:
  NodeState& kept_;
};

struct Container {
  ContainerDemand demand;
  StringMap asks;          // type -> class, of this container or its pod
  std::string id;          // of the runtime; empty: it does not run
  StringMap promised;      // type -> class by qrmd's answers
  bool is_placed = false;  // qrmd has it on record
};
struct Pod {
  std::string pod_namespace;
  std::map<std::string, Container> containers;
  StringMap asks;         // type -> class that any of its keys names, for permissions
  bool is_wrong = false;  // it has a key with a type, version or container that does not exist
  bool is_of_other_level = false;  // that key is of blockio, for pods as a whole
  bool knows_spec = false;         // qrmd places its containers together
};

std::string Of(const StringMap& classes, const std::string& type) {
  const auto found = classes.find(type);
  return found == classes.end() ? std::string() : found->second;
}

/// What outlives qrmd.
struct Around {
  NodeState& disk;
  test::AnsweringPlugins& plugins;
  checkpoint::DecisionLog& decisions;
};

/// One run of qrmd.
struct Qrmd {
  Qrmd(const Around& around, ClassesOptions options, ClassBook::Providers providers,
       placement::AdmissionOptions admission)
      : state({.store = std::make_unique<KeptStore>(around.disk), .state = around.disk}),
        book(std::move(options), std::move(providers)),
        keeper({.io = io,
                .state = state,
                .live = live,
                .book = book,
                .may_ask =
                    [permissions = admission.permissions](const auto& of, const auto& name) {
                      return permissions.Allows(
                          of, {.feature = placement::Feature::kClass, .name = name});
                    }},
               std::chrono::hours(1)),
        releaser(state, around.plugins, {}),
        admitter({.state = state,
                  .decisions = around.decisions,
                  .plugins = around.plugins,
                  .releaser = releaser,
                  .machine = machine,
                  .clock = clock,
                  .classes = &book},
                 std::move(admission)) {}
  ~Qrmd() {
    keeper.Stop();
    state.Stop();
  }
  Qrmd(const Qrmd&) = delete;
  Qrmd& operator=(const Qrmd&) = delete;

  const Machine machine = test::SampleMachine();
  test::ManualClock clock;
  boost::asio::io_context io;
  LiveContainers live;
  StateLoop state;
  ClassBook book;
  ClassKeeper keeper;
  Releaser releaser;
  Admitter admitter;
};

class Walk {
 public:
  explicit Walk(unsigned seed) : random_(seed) {
    plugins_.Set("cpu", test::Gives("cpu", test::Pin(kCpusetCpus, "0-1")));
    plugins_.Set("memory", test::Gives("memory", test::Pin(kCpusetMems, "0")));
    for (const std::string& type : kernel_.Names()) {
      on_.insert(type);
    }
    PutAnchor();
    Start();
  }

  /// Errors: a broken promise.
  Status Step() {
    plugins_.ForgetCalls();
    switch (Dice(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        CreatePod();
        break;
      case 4:
      case 5:
        RemovePod();
        break;
      case 6:
        RestartContainer();
        break;
      case 7:
        ChangeClasses();
        break;
      case 8:
        ChangeRules();
        break;
      case 9:
      case 10:
        SetClass();
        break;
      case 11:
        Meddle();
        break;
      case 12:
        BreakPlugin();
        break;
      default:
        if (Dice(2) == 0) {
          Kill();
        }
    }
    QRM_RETURN_IF_ERROR(std::exchange(wrong_, OkStatus()));
    return Check();
  }
  std::size_t promised() const { return promised_; }
  std::size_t rejected() const { return rejected_; }
  std::size_t marked() const { return marked_; }
  std::size_t given_late() const { return late_; }

 private:
  std::size_t Dice(std::size_t sides) {
    return std::uniform_int_distribution<std::size_t>(0, sides - 1)(random_);
  }
  template <typename Map>
  auto AnyOf(Map& map) {
    return std::next(map.begin(), static_cast<std::ptrdiff_t>(Dice(map.size())));
  }
  std::string AnyType() { return kernel_.Names()[Dice(4)]; }
  Pod* AnyPod() { return pods_.empty() ? nullptr : &AnyOf(pods_)->second; }
  Container& AnyContainer(Pod& pod) { return AnyOf(pod.containers)->second; }
  void Wrong(const std::string& what) { wrong_.Update(Status(StatusCode::kInternal, what)); }

  ClassesOptions DrawRules() {
    ClassesOptions options{.enabled = true};
    for (const std::string& type : on_) {
      ClassTypeRules& rules = options.types[type];
      rules.classes["fast"] = {.capacity = Dice(4), .namespaces = {Dice(5) == 0 ? "db" : "*"}};
      rules.classes["slow"] = {.namespaces = {"*"}};
      if (Dice(2) == 0) {
        rules.namespace_defaults["batch"] = "slow";
      }
    }
    return options;
  }

  // Its Prepare runs on each type's thread after what was posted there before.
  void PutAnchor() {
    checkpoint::Change change;
    ContainerRecord record;
    for (const std::string& type : kernel_.Names()) {
      record.classes.Edit()[type] = kAnchor;
    }
    change.put_containers.push_back({test::SamplePod(kAnchor), "main", record});
    disk_ = disk_.With(change);
  }
  void Await() {
    std::promise<void> done;
    qrmd_->keeper.Prepare({"uid-anchor", "main"}, [&](const Status&) { done.set_value(); });
    done.get_future().get();
    test::Settle(qrmd_->state);
  }

  void Start() {
    ClassBook::Providers providers;
    options_ = DrawRules();
    retired_.clear();
    for (const std::string& type : kernel_.Names()) {
      if (on_.contains(type)) {
        providers.push_back(std::make_unique<Provider>(kernel_, type, false));
      } else if (!on_.empty() && !IsPluginType(type) && !ClassesInUse(type, disk_).empty()) {
        retired_.insert(type);
        providers.push_back(std::make_unique<Provider>(kernel_, type, true));
      }
    }
    admission_.permissions = placement::Permissions(
        {{.title = "web",
          .namespaces = {"web"},
          .classes = {Dice(2) == 0 ? "blockio/*" : "memory-protection/fast", "oom/*"}}});
    qrmd_ = std::make_unique<Qrmd>(Around{disk_, plugins_, decisions_.log}, options_,
                                   std::move(providers), admission_);
    std::map<SharedText, std::set<SharedText>> ids = {{"uid-anchor", {"anchor"}}};
    std::map<ContainerKey, LiveContainer> containers = {{{"uid-anchor", "main"}, Live(kAnchor)}};
    for (const auto& [name, pod] : pods_) {
      for (const auto& [container, of] : pod.containers) {
        if (!of.id.empty()) {
          ids["uid-" + name] = {name};
          containers[of.demand.key()] = Live(of.id, name);
        }
      }
    }
    qrmd_->live.Reset(ids, std::move(containers));
    qrmd_->keeper.Start();
  }
  static LiveContainer Live(const std::string& id, const std::string& pod = kAnchor) {
    return {.id = id, .pod_id = "sandbox-" + pod, .cgroups_path = "/kubepods/" + pod + "/" + id};
  }

  void CreatePod() {
    if (pods_.size() > 8) {
      RemovePod();
    }
    const std::string name = fmt::format("pod{}", ++last_pod_);
    Pod& pod = pods_[name] = DrawPod(name, Dice(2) == 0);
    for (auto& [container, of] : pod.containers) {
      if (pod.knows_spec || Dice(2) == 0) {
        CreateContainer(name, of);
      }
    }
    DropIfEmpty(name);
  }
  void DropIfEmpty(const std::string& name) {
    const auto& containers = pods_.at(name).containers;
    if (std::none_of(containers.begin(), containers.end(), [](const auto& each) {
          return each.second.is_placed || !each.second.id.empty();
        })) {
      pods_.erase(name);
    }
  }

  Pod DrawPod(const std::string& name, bool knows_spec) {
    constexpr const char* kNamespaces[] = {"default", "db", "batch", "web", "kube-system"};
    Pod pod{.pod_namespace = kNamespaces[Dice(5)], .knows_spec = knows_spec};
    checkpoint::PodMeta meta = test::SamplePod(name, pod.pod_namespace);
    std::vector<std::string> names = {"a"};
    if (Dice(2) == 0) {
      names.emplace_back("b");
    }
    for (const std::string& container : names) {
      pod.containers[container].demand = test::Demand(name, container);
    }
    for (const std::string& type : kernel_.Names()) {
      if (Dice(3) == 0) {
        DrawRequest(type, meta, pod);
      }
    }
    constexpr const char* kWrong[] = {"blokio.resources.alpha.kubernetes.io/default",
                                      "blockio.resources.gamma.kubernetes.io/default",
                                      "blockio.resources.alpha.kubernetes.io/container.c",
                                      "blockio.resources.qrm.io/pod"};
    if (Dice(12) == 0) {
      const std::size_t which = Dice(4);
      // With half of a pod's containers known, a name may be of one that is not.
      if (which != 2 || pod.knows_spec) {
        meta.annotations.Edit()[kWrong[which]] = "slow";
        pod.is_wrong = true;
        pod.is_of_other_level = which == 3;
      }
    }
    for (auto& [container, of] : pod.containers) {
      of.demand.pod = meta;
      of.demand.has_all_others = pod.knows_spec || pod.containers.size() == 1;
    }
    for (auto& [container, of] : pod.containers) {
      for (const auto& [other, its] : pod.containers) {
        if (pod.knows_spec && other != container) {
          of.demand.others.push_back(its.demand);
          of.demand.others.back().others.clear();
        }
      }
      of.demand.place = container == "b" && pod.knows_spec ? 1 : 0;
    }
    return pod;
  }

  void DrawRequest(const std::string& type, checkpoint::PodMeta& meta, Pod& pod) {
    constexpr const char* kClasses[] = {"fast", "fast", "slow", "slow", "gold"};
    const std::string name = Dice(8) == 0 ? "" : kClasses[Dice(Dice(4) == 0 ? 5 : 4)];
    if (!name.empty()) {
      pod.asks[type] = name;
    }
    const bool is_of_pod = kernel_.At(type, [](auto& of) { return of.level == ClassLevel::kPod; });
    const bool is_own = !is_of_pod && Dice(3) == 0;
    constexpr const char* kKeys[] = {".resources.alpha.kubernetes.io/default",
                                     ".resources.beta.kubernetes.io/pod",
                                     ".resources.kubernetes.io/default"};
    const std::string key = is_of_pod ? ".resources.qrm.io/pod"
                            : is_own  ? ".resources.alpha.kubernetes.io/container.a"
                                      : kKeys[Dice(3)];
    meta.annotations.Edit()[type + key] = name;
    for (auto& [container, of] : pod.containers) {
      if (!is_own || container == "a") {
        of.asks[type] = name;
      }
    }
  }

  /// The runtime asks qrmd, creates the container, and starts it once qrmd has prepared it.
  void CreateContainer(const std::string& pod_name, Container& container) {
    Pod& pod = pods_.at(pod_name);
    const bool is_new = !container.is_placed;
    const std::string why = is_new ? WhyRejected(pod, container) : "";
    const auto admitted = Admit(container, Admitter::Moment::kAtCreation);
    if (admitted.ok() != why.empty()) {
      Wrong(fmt::format("{} of {} is {}, expected: {}", container.demand.container, pod_name,
                        MessageOf(admitted.status()), why.empty() ? "admitted" : why));
      return;
    }
    if (!admitted.ok()) {
      ++rejected_;
      return;
    }
    TakeRecords(pod);
    container.id = fmt::format("{}-{}-{}", pod_name, container.demand.container, ++last_id_);
    for (const auto& [type, name] : admitted->classes.unified) {
      kernel_.At(type, [&](auto& of) { return of.has[container.id] = name; });
    }
    qrmd_->live.Add(container.demand.key(), Live(container.id, pod_name));
    std::promise<Status> done;
    qrmd_->keeper.Prepare(container.demand.key(), [&](const Status& s) { done.set_value(s); });
    if (!done.get_future().get().ok()) {
      qrmd_->live.Remove(container.demand.key(), container.id);
      container.id.clear();
    }
  }
  StatusOr<RunOptions> Admit(const Container& container, Admitter::Moment moment) {
    return test::RunOn(qrmd_->state, [&] {
      return qrmd_->admitter.Admit(container.demand, moment,
                                   DeadlineAfter(std::chrono::seconds(10)));
    });
  }

  /// By the rules, and by what is promised to others; empty: it must be admitted.
  std::string WhyRejected(const Pod& pod, const Container& asked) {
    if (on_.empty()) {
      return "";
    }
    if (pod.is_wrong) {
      return "a key is wrong";
    }
    std::map<std::pair<std::string, std::string>, std::size_t>
        more;  // type and class -> taken by the pod's containers so far
    for (const auto& [name, of] : pod.containers) {
      // Containers that qrmd skips are decided one by one.
      const bool is_alone = !pod.knows_spec || pod.pod_namespace == "kube-system";
      if (of.is_placed || (&of != &asked && is_alone)) {
        continue;
      }
      for (const std::string& type : Known()) {
        const std::string want = Of(of.asks, type);
        const bool of_pod = IsOfPod(type);
        if (of_pod && PodHas(pod, type)) {
          if (const std::string now = PodClass(pod, type); !now.empty()) {
            if (const std::string why = WhyNotGiven(type, now); !why.empty()) {
              return why;
            }
          }
          continue;
        }
        if (want.empty() || (of_pod && more.contains({type, want}))) {
          continue;
        }
        if (const std::string why = WhyNot(type, want, more[{type, want}]++); !why.empty()) {
          return why;
        }
      }
    }
    for (const auto& [type, want] : pod.asks) {
      if (Known().contains(type) && !MayAsk(pod, type, want)) {
        return "it may not ask";
      }
    }
    for (const std::string& type : kernel_.Names()) {
      if (!Known().contains(type) && HasKey(asked, type) &&
          !(type == kDisk && OnlyBeta(asked, type))) {
        return "its type is not known";
      }
    }
    return "";
  }
  std::set<std::string> Known() const {
    std::set<std::string> known = on_;
    known.insert(retired_.begin(), retired_.end());
    return known;
  }
  static bool HasKey(const Container& container, const std::string& type) {
    const StringMap& keys = *container.demand.pod.annotations;
    return std::any_of(keys.begin(), keys.end(), [&](const auto& each) {
      return each.first.starts_with(type + ".resources.");
    });
  }
  static bool OnlyBeta(const Container& container, const std::string& type) {
    return container.demand.pod.annotations.contains(type + ".resources.beta.kubernetes.io/pod");
  }
  bool IsOfPod(const std::string& type) {
    return kernel_.At(type, [](auto& of) { return of.level == ClassLevel::kPod; });
  }
  bool MayAsk(const Pod& pod, const std::string& type, const std::string& name) {
    const auto rules = options_.types.find(type);
    if (rules != options_.types.end()) {
      const auto rule = rules->second.classes.find(name);
      if (rule != rules->second.classes.end() &&
          (rule->second.namespaces.front() == "*" ||
           rule->second.namespaces.front() == pod.pod_namespace)) {
        return true;
      }
    }
    return admission_.permissions.Allows(
        pod.pod_namespace, {.feature = placement::Feature::kClass, .name = type + "/" + name});
  }
  /// Why no container can have the class now.
  std::string WhyNotGiven(const std::string& type, const std::string& name) {
    if (retired_.contains(type)) {
      return "its type is retired";
    }
    return kernel_.At(type, [&](auto& of) {
      return !of.problem.empty() ? of.problem : of.classes.contains(name) ? "" : "no such class";
    });
  }
  /// Why no container, or no other one, can have the class now.
  std::string WhyNot(const std::string& type, const std::string& name, std::size_t more) {
    std::string problem = WhyNotGiven(type, name);
    if (!problem.empty()) {
      return problem;
    }
    const uint64_t capacity = options_.types.at(type).classes[name].capacity;
    return capacity != 0 && Users(type, name) + more + 1 > capacity ? "it is full" : "";
  }
  static std::string PodClass(const Pod& pod, const std::string& type) {
    for (const auto& [name, of] : pod.containers) {
      if (of.promised.contains(type)) {
        return of.promised.at(type);
      }
    }
    return "";
  }
  /// Whether the record of the pod's first container decides about the others.
  static bool PodHas(const Pod& pod, const std::string& type) {
    const auto first = std::find_if(pod.containers.begin(), pod.containers.end(),
                                    [](const auto& each) { return each.second.is_placed; });
    return first != pod.containers.end() && first->second.promised.contains(type);
  }
  std::size_t Users(const std::string& type, const std::string& name) {
    std::size_t users = 0;
    for (const auto& [pod_name, pod] : pods_) {
      std::size_t count = 0;
      for (const auto& [container, of] : pod.containers) {
        count += Of(of.promised, type) == name ? 1 : 0;
      }
      users += IsOfPod(type) ? std::min<std::size_t>(count, 1) : count;
    }
    return users;
  }

  /// What new records promise: what the pod asks for, or a default.
  void TakeRecords(Pod& pod) {
    const auto state = qrmd_->state.Load();
    for (auto& [name, of] : pod.containers) {
      const ContainerRecord* const record = state->Find(of.demand.key());
      if (record == nullptr || of.is_placed) {
        continue;
      }
      of.is_placed = true;
      of.promised = *record->classes;
      for (const auto& [type, has] : of.promised) {
        const std::string want = Of(of.asks, type);
        const bool is_default = !of.asks.contains(type) && has == "slow" && type != kOfPods;
        const bool too_late = has.empty() && type == kScore;
        if (has != want && !is_default && !too_late && type != kOfPods) {
          Wrong(fmt::format("{} asks for {} class '{}' and got '{}'", name, type, want, has));
        }
        promised_ += has.empty() ? 0 : 1;
      }
      for (const auto& [type, want] : of.asks) {
        if (on_.contains(type) && !want.empty() && !of.promised.contains(type)) {
          Wrong(fmt::format("{} asks for {} class {} and got none", name, type, want));
        }
      }
    }
  }

  void RemovePod() {
    if (pods_.empty()) {
      return;
    }
    const auto gone = AnyOf(pods_);
    for (const auto& [name, of] : gone->second.containers) {
      if (!of.id.empty()) {
        qrmd_->live.Remove(of.demand.key(), of.id);
      }
    }
    const std::string uid = "uid-" + gone->first;
    const Status removed =
        test::RunOn(qrmd_->state, [&] { return qrmd_->state.Commit({.remove_pods = {uid}}); });
    EXPECT_TRUE(IsOk(removed));
    pods_.erase(gone);
  }

  void RestartContainer() {
    if (pods_.empty()) {
      return;
    }
    const auto pod = AnyOf(pods_);
    Container& container = AnyContainer(pod->second);
    if (!container.id.empty()) {
      qrmd_->live.Remove(container.demand.key(), container.id);
      container.id.clear();
    }
    CreateContainer(pod->first, container);
  }

  void ChangeClasses() {
    kernel_.At(AnyType(), [&](auto& type) {
      const char* const name = Dice(2) == 0 ? "fast" : "slow";
      return Dice(6) == 0 ? type.classes.erase(name) != 0 : type.classes.insert(name).second;
    });
    Look();
  }
  void BreakPlugin() {
    kernel_.At(AnyType(), [&](auto& type) {
      if (Dice(2) == 0) {
        type.problem = Dice(6) == 0 ? "the plugin is not running" : "";
      } else {
        type.fails = Dice(6) == 0;
      }
      return true;
    });
    Look();
  }
  /// The types look at the machine, which is when admissions know it.
  void Look() { qrmd_->book.Update(); }

  void ChangeRules() {
    ClassesOptions options = DrawRules();
    if (qrmd_->book.empty()) {
      return;
    }
    EXPECT_TRUE(IsOk(qrmd_->book.TakeRules(options)));
    options_ = std::move(options);
  }

  void SetClass() {
    Pod* const pod = AnyPod();
    const std::string type = AnyType();
    if (pod == nullptr || !on_.contains(type)) {
      return;
    }
    Container& container = AnyContainer(*pod);
    const bool of_pod = IsOfPod(type);
    const std::string name = Dice(4) == 0 ? "" : Dice(2) == 0 ? "fast" : "slow";
    std::promise<Status> done;
    qrmd_->keeper.Set(
        {.pod = container.demand.pod.uid,
         .container = of_pod ? "" : container.demand.container,
         .type = type,
         .name = name},
        [&](const StatusOr<std::string>& former) { done.set_value(former.status()); });
    const bool is_done = done.get_future().get().ok();
    test::Settle(qrmd_->state);
    for (auto& [other, of] : pod->containers) {
      if (is_done && of.is_placed && (of_pod || &of == &container)) {
        of.promised[type] = name;
      }
    }
  }

  checkpoint::Change HalfAChange() {
    Pod* const pod = AnyPod();
    if (pod == nullptr) {
      return {};
    }
    const std::string type = AnyType();
    const ContainerDemand demand = AnyContainer(*pod).demand;
    auto planned = PlanClassChange(*qrmd_->state.Load(), *qrmd_->book.Types(),
                                   {.pod = demand.pod.uid,
                                    .container = IsOfPod(type) ? "" : demand.container,
                                    .type = type,
                                    .name = Dice(2) == 0 ? "fast" : "slow"});
    if (!planned.ok()) {
      return {};
    }
    for (const auto& put : planned->change.put_containers) {
      pod->containers.at(put.container).promised[type] = put.record.classes.find(type)->second;
    }
    return planned->change;
  }

  /// Another process changes the class of a container.
  void Meddle() {
    Pod* const pod = AnyPod();
    const std::string type = AnyType();
    if (pod == nullptr || IsOfPod(type)) {
      return;
    }
    const Container& container = AnyContainer(*pod);
    const std::string promised = Of(container.promised, type);
    const bool is_kept = container.promised.contains(type) && (type != kScore || !promised.empty());
    if (is_kept && !container.id.empty() && Known().contains(type)) {
      kernel_.At(type, [&](auto& of) { return of.has[container.id] = Dice(2) == 0 ? "" : "slow"; });
    }
  }

  /// Qrmd dies, maybe between the record of a change and the kernel; containers come and go without
  /// it, and it starts with other types.
  void Kill() {
    const checkpoint::Change change = HalfAChange();
    qrmd_.reset();
    disk_ = disk_.With(change);
    for (std::size_t created = Dice(3); created > 0; --created) {
      const std::string name = fmt::format("pod{}", ++last_pod_);
      Pod pod = DrawPod(name, false);
      if (pod.is_wrong) {
        continue;
      }
      for (auto& [container, of] : pod.containers) {
        of.id = fmt::format("{}-{}-{}", name, container, ++last_id_);
      }
      pods_[name] = std::move(pod);
    }
    if (Dice(6) == 0) {
      on_.clear();
    } else if (on_.empty() || Dice(3) == 0) {
      const std::vector<std::string> all = kernel_.Names();
      on_.insert(all.begin(), all.end());
    } else if (Dice(2) == 0) {
      on_.erase(AnyType());
    }
    Start();
  }

  /// Containers that run without a record, as they are tried again and again.
  void PlaceRunning() {
    for (auto& [name, pod] : pods_) {
      for (auto& [container, of] : pod.containers) {
        if (of.is_placed || of.id.empty()) {
          continue;
        }
        if (Admit(of, Admitter::Moment::kAfterTheFact).ok()) {
          TakeRecords(pod);
        }
      }
    }
  }

  Status Check() {
    PlaceRunning();
    for (int round = 0; round < 2; ++round) {
      qrmd_->keeper.RefreshAll();
      Await();
    }
    const auto state = qrmd_->state.Load();
    for (auto& [name, pod] : pods_) {
      for (auto& [container, of] : pod.containers) {
        QRM_RETURN_IF_ERROR(CheckRecord(*state, pod, of));
      }
    }
    std::map<std::string, std::set<ContainerKey>> unmet;
    for (const auto& [name, pod] : pods_) {
      for (const auto& [container, of] : pod.containers) {
        for (const std::string& type : Known()) {
          QRM_RETURN_IF_ERROR(CheckInForce(name, pod, of, type, unmet[type]));
        }
      }
    }
    return CheckCounts(unmet);
  }

  /// The record is what was promised, or what its annotation asks for and was given late.
  Status CheckRecord(const NodeState& state, const Pod& pod, Container& of) {
    const ContainerRecord* const record = state.Find(of.demand.key());
    if ((record != nullptr) != of.is_placed) {
      return Errorf(StatusCode::kInternal, "{} is {}on record", of.demand.pod.name,
                    of.is_placed ? "not " : "");
    }
    if (record == nullptr) {
      return OkStatus();
    }
    for (const auto& [type, has] : *record->classes) {
      if (Of(of.promised, type) == has && of.promised.contains(type)) {
        continue;
      }
      const bool was_decided = of.promised.contains(type);
      const bool is_late =
          !was_decided && Of(of.asks, type) == has && type != kScore && MayAsk(pod, type, has) &&
          ((IsOfPod(type) && PodClass(pod, type) == has) || WhyNot(type, has, 0).empty());
      if (!is_late) {
        return Errorf(StatusCode::kInternal, "{}/{} has {} class '{}' on record, promised was '{}'",
                      of.demand.pod.name, of.demand.container, type, has, Of(of.promised, type));
      }
      if (!IsOfPod(type) || PodClass(pod, type).empty()) {
        ++late_;
      }
      of.promised[type] = has;
    }
    for (const auto& [type, has] : of.promised) {
      if (!record->classes.contains(type)) {
        return Errorf(StatusCode::kInternal, "{} has lost {} class '{}'", of.demand.pod.name, type,
                      has);
      }
    }
    return OkStatus();
  }

  Status CheckInForce(const std::string& pod_name, const Pod& pod, const Container& of,
                      const std::string& type, std::set<ContainerKey>& unmet) {
    if (!of.is_placed || of.id.empty()) {
      return OkStatus();
    }
    const bool of_pod = IsOfPod(type);
    const std::string promised = of_pod ? PodClass(pod, type) : Of(of.promised, type);
    const bool decided =
        of_pod ? std::any_of(pod.containers.begin(), pod.containers.end(),
                             [&](const auto& each) { return each.second.promised.contains(type); })
               : of.promised.contains(type);
    const std::string id = of_pod ? "sandbox-" + pod_name : of.id;
    const std::string has = kernel_.At(type, [&](auto& machine) { return machine.has[id]; });
    const bool is_at_rest = retired_.contains(type) || kernel_.At(type, [](auto& machine) {
      return machine.problem.empty() && !machine.fails;
    });
    const bool exists = !retired_.contains(type) && kernel_.At(type, [&](auto& machine) {
      return machine.problem.empty() && machine.classes.contains(promised);
    });
    const bool lacks_late =
        (!decided || (type == kScore && promised.empty())) &&
        (!Of(of.asks, type).empty() || (type == kDisk && pod.is_of_other_level));
    const bool is_unmet =
        promised.empty() ? lacks_late || (decided && !has.empty()) : !exists || has != promised;
    const auto problems = qrmd_->keeper.ProblemsOf(of.demand.key());
    const bool is_marked = std::any_of(problems.begin(), problems.end(), [&](const auto& problem) {
      return problem.find(type) != std::string::npos;
    });
    const bool fails = kernel_.At(type, [](auto& machine) { return machine.fails; });
    const bool may_be_marked =
        kernel_.At(type, [](auto& machine) { return !machine.problem.empty() || machine.fails; });
    const bool is_left =
        is_at_rest && !fails && decided && !has.empty() && (!exists || has != promised);
    if ((is_unmet && !is_marked) || (!is_unmet && is_marked && !may_be_marked) || is_left) {
      return Errorf(StatusCode::kInternal,
                    "{}/{} was promised {} class '{}' (decided {}, asked '{}'), has '{}', and its "
                    "marks are: {}; its annotations: {}",
                    pod_name, of.demand.container, type, promised, decided, Of(of.asks, type), has,
                    fmt::join(problems, "; "), fmt::join(*of.demand.pod.annotations, ", "));
    }
    if (is_marked) {
      unmet.insert({of.demand.pod.uid, of_pod ? "" : of.demand.container});
      ++marked_;
    }
    return OkStatus();
  }

  /// Users are those who were promised the class; each who lacks something counts once.
  Status CheckCounts(std::map<std::string, std::set<ContainerKey>>& unmet) {
    for (const ClassTypeStatus& status : qrmd_->keeper.GetStatus()) {
      const std::string& type = status.offered.type.name;
      if (!Known().contains(type)) {
        continue;
      }
      for (const auto& [name, users] : status.users) {
        const std::size_t expected = name == kAnchor ? 1 : Users(type, name);
        if (users != expected) {
          return Errorf(StatusCode::kInternal, "{} class {} has {} users instead of {}", type, name,
                        users, expected);
        }
      }
      // The anchor, and the type itself, while it has a problem.
      const bool is_broken = !retired_.contains(type) &&
                             kernel_.At(type, [](auto& of) { return !of.problem.empty(); });
      if (status.work.problems.size() != unmet[type].size() + (is_broken ? 2 : 0)) {
        return Errorf(StatusCode::kInternal, "{} containers lack a class of {}, but marked are: {}",
                      unmet[type].size(), type, fmt::join(status.work.problems, "; "));
      }
    }
    return OkStatus();
  }

  std::mt19937 random_;
  Kernel kernel_;
  test::AnsweringPlugins plugins_;
  test::TempDecisions decisions_;
  NodeState disk_;
  std::map<std::string, Pod> pods_;
  std::set<std::string> on_;       // the types in the configuration
  std::set<std::string> retired_;  // those that are not in it any more, and in use
  ClassesOptions options_;
  placement::AdmissionOptions admission_;
  std::unique_ptr<Qrmd> qrmd_;
  Status wrong_;
  uint64_t last_pod_ = 0;
  uint64_t last_id_ = 0;
  std::size_t promised_ = 0;
  std::size_t rejected_ = 0;
  std::size_t marked_ = 0;
  std::size_t late_ = 0;
};

TEST(ClassWalkTest, WhatAContainerWasPromisedIsInForceOrMarkedAndCountedOnce) {
  log::SetLevel(log::Level::kError);
  const int steps = test::RoundsBy("QRM_CLASS_STEPS", test::Rounds(1500));
  Walk walk(static_cast<unsigned>(test::RoundsBy("QRM_CLASS_SEED", 1)));
  for (int step = 0; step < steps; ++step) {
    ASSERT_TRUE(IsOk(walk.Step())) << "step " << step;
  }
  log::SetLevel(log::Level::kInfo);
  const auto each_hundred = static_cast<std::size_t>(steps) / 100;
  EXPECT_GT(walk.promised(), 5 * each_hundred);
  EXPECT_GT(walk.rejected(), 5 * each_hundred);
  EXPECT_GT(walk.marked(), 10 * each_hundred);
  EXPECT_GE(walk.given_late(), each_hundred / 4);
}

}  // namespace
}  // namespace qrm::manager::class_walk_test
