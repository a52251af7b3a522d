// Compares by what both caches print.
#include "scheduler/extender/comparer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "scheduler/cache/filter.h"
#include "scheduler/extender/cluster_feed.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBusy = 503;
constexpr char kComparisonType[] = "application/json";
/// For a moment in which nothing changes.
constexpr std::chrono::seconds kPatience{30};
/// Between two looks: printing a large cache keeps its writer busy.
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kMostPause{2'000};

HttpAnswer Answer(const json& answer) {
  return {.body = answer.dump(2) + "\n", .type = kComparisonType};
}

}  // namespace

Comparer::Comparer(SchedulerCache& cache, cluster::ClusterAccess access, MakeHandles make_handles)
    : cache_(cache), access_(std::move(access)), make_handles_(std::move(make_handles)) {}

Comparer::~Comparer() {
  stopped_ = true;
}

void Comparer::Compare(const HttpReply& reply) {
  if (busy_.exchange(true)) {
    reply({kBusy, "cannot compare: another comparison is under way; try again in half a minute\n"});
    return;
  }
  thread_.Post([this, reply] {
    HttpAnswer answer = Run();
    busy_ = false;
    reply(std::move(answer));
  });
}

HttpAnswer Comparer::Run() const {
  FreshCache fresh(access_, make_handles_, "qrm-scheduler");
  if (const Status started = fresh.Start(); !started.ok()) {
    return Answer({{"error", MessageOf(started)}});
  }
  const auto end = steady_clock::now() + kPatience;
  json now;
  json anew;
  Status trouble;
  for (milliseconds pause = kFirstPause; steady_clock::now() < end && !stopped_;) {
    trouble = fresh.Follow(pause);
    if (!CheckSynced(*fresh.cache().Load()).ok()) {
      continue;
    }
    now = json::parse(cache_.Dump(), nullptr, false);
    anew = json::parse(fresh.cache().Dump(), nullptr, false);
    if (now == anew) {
      return Answer({{"equal", true}});
    }
    pause = std::min(2 * pause, kMostPause);
  }
  json answer = {{"equal", false}, {"cache", std::move(now)}, {"rebuilt", std::move(anew)}};
  if (!trouble.ok()) {
    answer["error"] = MessageOf(trouble);
  }
  return Answer(answer);
}

}  // namespace qrm::scheduler
