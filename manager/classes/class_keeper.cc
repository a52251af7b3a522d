// Runs each type's worker on that type's thread.
#include "manager/classes/class_keeper.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/task_thread.h"
#include "manager/classes/class_change.h"
#include "manager/classes/class_worker.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;

namespace {

using Prepared = std::function<void(const Status&)>;
using Changed = std::function<void(const StatusOr<std::string>&)>;

std::string Left(const checkpoint::PodRecord& pod, const std::string& container,
                 const LeftClass& left) {
  return fmt::format("{}{}/{} keeps values of class {}: {}",
                     container.empty() ? "pod " : fmt::format("container {} of pod ", container),
                     pod.meta.pod_namespace, pod.meta.name, left.name, left.why);
}

/// The types that containers have a class of, but that have no provider.
std::vector<ClassTypeStatus> Unserved(const checkpoint::NodeState& state,
                                      const LiveContainers& live, const OfferedTypes& served) {
  static const auto kNoRules = std::make_shared<const ClassTypeRules>();
  std::map<std::string, ClassTypeStatus> unserved;
  state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      for (const auto& [type, name] : record->classes) {
        if (name.empty() || FindType(served, type) != nullptr ||
            !live.Find({pod.meta.uid, container}).has_value()) {
          continue;
        }
        ClassTypeStatus& status = unserved[type];
        status.offered = {.type = {.name = type}, .rules = kNoRules, .is_retired = true};
        const char* const why =
            IsPluginType(type)
                ? "its plugin is not asked; name the type in class-types and restart qrmd"
                : "qos-classes is off; turn it on and restart qrmd, without the type to have the "
                  "values removed";
        status.left.push_back(Left(pod, container, {.name = name, .why = why}));
      }
    }
  });
  std::vector<ClassTypeStatus> statuses;
  for (auto& [type, status] : unserved) {
    statuses.push_back(std::move(status));
  }
  return statuses;
}

/// Joins the answers of several types into one: the first error, or OK.
class Join {
 public:
  Join(std::size_t count, Prepared done) : left_(count), done_(std::move(done)) {}

  void Add(const Status& status) {
    bool last = false;
    {
      const MutexLock guard(mutex_);
      all_.Update(status);
      last = --left_ == 0;
    }
    if (last) {
      done_(all_);
    }
  }

 private:
  Mutex mutex_;
  std::size_t left_ QRM_GUARDED_BY(mutex_);
  Status all_;  // written under the mutex, read after the last answer
  const Prepared done_;
};

}  // namespace

struct ClassKeeper::Impl {
  struct Type {
    Type(sdk::ClassProvider& given, const checkpoint::NoteEvent& note)
        : provider(given), name(given.List().name), worker(given, note) {}

    sdk::ClassProvider& provider;
    const std::string name;
    ClassWorker worker;
    std::atomic<bool> in_round{false};
    TaskThread thread;  // last: its tasks use the others
  };

  Impl(Parts given_parts, std::chrono::milliseconds given_period)
      : parts(std::move(given_parts)), period(given_period), timer(parts.io) {
    for (const auto& provider : parts.book.providers()) {
      types.push_back(std::make_unique<Type>(*provider, parts.note));
    }
  }

  void Await();
  void BeginRounds();
  void BeginRound(Type& type);
  void Round(Type& type);
  void GiveAsked(Type& type, const OfferedType& offered, const ContainerKey& key,
                 const WantedClass& wanted);
  Status Record(const std::string& type, const ContainerKey& key, const WantedClass& wanted);
  void Commit(const ClassChange& change, const Changed& done);
  void Give(const ClassChange& change, const PlannedClassChange& planned, const Changed& done);
  void Note(const ClassChange& change, const PlannedClassChange& planned) const;
  void TakeBack(const ClassChange& change, const PlannedClassChange& planned);
  Type* Find(const std::string& name);

  const Parts parts;
  const std::chrono::milliseconds period;
  boost::asio::steady_timer timer;
  bool stopped = false;  // on the I/O loop
  std::vector<std::unique_ptr<Type>> types;
};

ClassKeeper::Impl::Type* ClassKeeper::Impl::Find(const std::string& name) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const auto& type) { return type->name == name; });
  return found == types.end() ? nullptr : found->get();
}

void ClassKeeper::Impl::Await() {
  timer.expires_after(period);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped) {
      BeginRounds();
      Await();
    }
  });
}

void ClassKeeper::Impl::BeginRounds() {
  if (parts.stands_aside() || !parts.live.synchronized()) {
    return;
  }
  for (const auto& type : types) {
    BeginRound(*type);
  }
}

void ClassKeeper::Impl::BeginRound(Type& type) {
  if (!type.in_round.exchange(true)) {
    type.thread.Post([this, &type] {
      Round(type);
      type.in_round = false;
    });
  }
}

void ClassKeeper::Impl::Round(Type& type) {
  const auto state = parts.state.Load();
  type.worker.Refresh(ClassesInUse(type.name, *state));
  parts.book.Update();
  const auto offered = parts.book.Types();
  const OfferedType* listed = FindType(*offered, type.name);
  if (listed != nullptr && parts.live.synchronized() && !parts.stands_aside()) {
    const WantedClasses wanted = WantedOf(*listed, *state, parts.live);
    type.worker.Round(wanted);
    for (const auto& [key, one] : wanted) {
      if (!one.by.empty()) {
        GiveAsked(type, *listed, key, one);
      }
    }
  }
}

// The container was created while its type was off, or while qrmd was not running. The next round
// applies what is recorded here.
void ClassKeeper::Impl::GiveAsked(Type& type, const OfferedType& offered, const ContainerKey& key,
                                  const WantedClass& wanted) {
  const auto report = [&type, key, wanted](const std::string& why) {
    type.worker.Report(key, why.empty() ? why
                                        : fmt::format("{} asks for {} class {}, but runs without "
                                                      "it: {}",
                                                      wanted.by, type.name, wanted.asked, why));
  };
  const auto state = parts.state.Load();
  const checkpoint::PodRecord* const pod = state->FindPod(key.pod_uid);
  if (wanted.asked.empty()) {
    type.worker.Report(key, fmt::format("{}; it runs without class of {}", wanted.by, type.name));
  } else if (!offered.type.is_mutable) {
    report(fmt::format("{} cannot change while a container runs; recreate the pod", type.name));
  } else if (pod == nullptr || (!offered.IsOpenTo(wanted.asked, pod->meta) &&
                                !parts.may_ask(pod->meta.pod_namespace,
                                               fmt::format("{}/{}", type.name, wanted.asked)))) {
    report("its namespace may not ask for it");
  } else {
    parts.state.Post([this, &type, key, wanted, report] {
      const Status recorded = Record(type.name, key, wanted);
      report(recorded.ok() ? "" : MessageOf(recorded));
    });
  }
}

// On the state loop.
Status ClassKeeper::Impl::Record(const std::string& type, const ContainerKey& key,
                                 const WantedClass& wanted) {
  const auto state = parts.state.Load();
  const checkpoint::PodRecord* const pod = state->FindPod(key.pod_uid);
  const bool decided =
      pod == nullptr ||
      std::any_of(pod->containers.begin(), pod->containers.end(), [&](const auto& container) {
        return (key.container.empty() || container.first == key.container) &&
               container.second->classes.contains(type);
      });
  if (decided) {
    return OkStatus();
  }
  const ClassChange change{.pod = key.pod_uid,
                           .container = key.container,
                           .type = type,
                           .name = wanted.asked,
                           .by = wanted.by};
  const auto types_now = parts.book.Types();
  QRM_ASSIGN_OR_RETURN(const PlannedClassChange planned,
                       PlanClassChange(*state, *types_now, change));
  QRM_RETURN_IF_ERROR(parts.state.Commit(planned.change));
  Note(change, planned);
  return OkStatus();
}

// On the state loop.
void ClassKeeper::Impl::Commit(const ClassChange& change, const Changed& done) {
  const auto types_now = parts.book.Types();
  const auto planned = PlanClassChange(*parts.state.Load(), *types_now, change);
  Status saved = planned.status();
  if (saved.ok()) {
    saved = parts.state.Commit(planned->change);
  }
  if (!saved.ok()) {
    done(Annotate(saved, "cannot set the class"));
    return;
  }
  log::Info("class changed", {{"pod", change.pod},
                              {"container", change.container},
                              {"type", change.type},
                              {"from", planned->former},
                              {"to", change.name}});
  Note(change, *planned);
  Type* type = Find(change.type);
  type->thread.Post([this, change, planned = *planned, done] { Give(change, planned, done); });
}

void ClassKeeper::Impl::Note(const ClassChange& change, const PlannedClassChange& planned) const {
  const auto text = [](const std::string& name) { return name.empty() ? "none" : name; };
  parts.note({.type = "class",
              .message = fmt::format("{} class: {} -> {}", change.type, text(planned.former),
                                     text(change.name)),
              .by = change.by,
              .key = planned.key});
}

// On the type's thread. A container that does not run gets its class when it starts.
void ClassKeeper::Impl::Give(const ClassChange& change, const PlannedClassChange& planned,
                             const Changed& done) {
  const auto target = FindClassTarget(planned.key, parts.live);
  const Status given =
      target.ok() ? Find(change.type)->worker.Give({*target, change.name}) : OkStatus();
  if (!given.ok()) {
    parts.state.Post([this, change, planned] { TakeBack(change, planned); });
    done(Annotate(given, "cannot set the class"));
    return;
  }
  done(planned.former);
}

// On the state loop. A later change of the class must stay.
void ClassKeeper::Impl::TakeBack(const ClassChange& change, const PlannedClassChange& planned) {
  const auto state = parts.state.Load();
  checkpoint::Change back;
  for (const auto& put : planned.change.put_containers) {
    const ContainerRecord* const now = state->Find({planned.key.pod_uid, put.container});
    if (now == nullptr || !now->classes.contains(change.type) ||
        now->classes.find(change.type)->second != change.name) {
      continue;
    }
    back.put_containers.push_back({.pod = put.pod, .container = put.container, .record = *now});
    StringMap& classes = back.put_containers.back().record.classes.Edit();
    classes.erase(change.type);
    if (const auto had = planned.before.find(put.container); had != planned.before.end()) {
      classes.insert({change.type, had->second});
    }
  }
  if (back.put_containers.empty()) {
    return;
  }
  ClassChange undo = change;
  undo.name = planned.former;
  Note(undo, {.key = planned.key, .former = change.name});
  if (const Status saved = parts.state.Remember(back); !saved.ok()) {
    log::Warning("cannot record the former class",
                 {{"pod", change.pod}, {"error", MessageOf(saved)}});
  }
}

ClassKeeper::ClassKeeper(Parts parts, std::chrono::milliseconds period)
    : impl_(std::make_unique<Impl>(std::move(parts), period)) {}

ClassKeeper::~ClassKeeper() = default;

void ClassKeeper::Start() {
  if (impl_->types.empty()) {
    return;
  }
  const auto state = impl_->parts.state.Load();
  for (const auto& type : impl_->types) {
    type->thread.Run([&] { type->worker.Refresh(ClassesInUse(type->name, *state)); });
  }
  impl_->parts.book.Update();
  impl_->Await();
}

void ClassKeeper::Stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
}

void ClassKeeper::Refresh(const std::string& type) {
  if (Impl::Type* found = impl_->Find(type); found != nullptr) {
    impl_->BeginRound(*found);
  }
}

void ClassKeeper::RefreshAll() {
  for (const auto& type : impl_->types) {
    impl_->BeginRound(*type);
  }
}

void ClassKeeper::Prepare(const ContainerKey& key, Prepared done) {
  const auto state = impl_->parts.state.Load();
  const ContainerRecord* record = impl_->types.empty() ? nullptr : state->Find(key);
  const auto offered = impl_->parts.book.Types();
  std::vector<std::pair<Impl::Type*, WantedClass>> wanted;
  for (const auto& [type_name, name] : record == nullptr ? Shared<StringMap>() : record->classes) {
    Impl::Type* type = impl_->Find(type_name);
    if (type == nullptr || name.empty()) {
      continue;
    }
    const OfferedType* listed = FindType(*offered, type_name);
    if (listed != nullptr && listed->type.problem.empty() && listed->Find(name) == nullptr) {
      continue;  // its class does not exist any more; the next round reports that
    }
    const bool of_pod = listed != nullptr && listed->type.level == sdk::ClassLevel::kPod;
    auto target = FindClassTarget(of_pod ? ContainerKey{key.pod_uid, ""} : key, impl_->parts.live);
    if (!target.ok()) {
      done(Annotate(target.status(), fmt::format("cannot give {} class {}", type_name, name)));
      return;
    }
    wanted.emplace_back(type, WantedClass{*std::move(target), name});
  }
  if (wanted.empty()) {
    done(OkStatus());
    return;
  }
  const auto join = std::make_shared<Join>(wanted.size(), std::move(done));
  for (auto& [of, one] : wanted) {
    of->thread.Post([&type = *of, target = std::move(one), join] {
      const Status given = type.worker.Give(target);
      join->Add(given.ok() ? given
                           : Annotate(given, fmt::format("cannot give {} class {}", type.name,
                                                         target.name)));
    });
  }
}

void ClassKeeper::Set(const ClassChange& change, Changed done) {
  impl_->parts.state.Post(
      [impl = impl_.get(), change, done = std::move(done)] { impl->Commit(change, done); });
}

std::vector<std::string> ClassKeeper::ProblemsOf(const ContainerKey& key) const {
  std::vector<std::string> problems;
  for (const auto& type : impl_->types) {
    for (const ContainerKey& of : {key, ContainerKey{key.pod_uid, ""}}) {
      if (std::string problem = type->worker.ProblemOf(of); !problem.empty()) {
        problems.push_back(std::move(problem));
      }
    }
  }
  return problems;
}

std::vector<ClassTypeStatus> ClassKeeper::GetStatus() const {
  const auto state = impl_->parts.state.Load();
  const auto types = impl_->parts.book.Types();
  std::vector<ClassTypeStatus> statuses = Unserved(*state, impl_->parts.live, *types);
  for (const OfferedType& type : *types) {
    ClassTypeStatus status{.offered = type};
    status.work = impl_->Find(type.type.name)->worker.GetWork();
    for (const auto& [key, left] : status.work.left) {
      if (const checkpoint::PodRecord* pod = state->FindPod(key.pod_uid); pod != nullptr) {
        status.left.push_back(Left(*pod, key.container, left));
      }
    }
    if (type.is_retired && !type.type.problem.empty()) {
      status.left.push_back(type.type.problem);
    }
    for (const sdk::ClassInfo& info : type.type.classes) {
      status.users[info.name] = CountUsers(*state, type, info.name);
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

}  // namespace qrm::manager
