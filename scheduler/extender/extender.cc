// Judges by one snapshot from the beginning of a call to its end.
#include "scheduler/extender/extender.h"

#include <utility>

#include "api/base/errorf.h"
#include "scheduler/cache/filter.h"

namespace qrm::scheduler {
namespace {

/// kube-scheduler's scores are 0 to 10, ours 0 to 100.
constexpr int kScoreStep = 10;

}  // namespace

Extender::Extender(const Peers& peers, MayJudge may_judge, const Options& options)
    : cache_(peers.cache),
      binder_(peers.binder),
      metrics_(peers.metrics),
      waker_(peers.waker),
      may_judge_(std::move(may_judge)),
      options_(options) {}

std::string Extender::Filter(const std::string& body, HandleCall& call) {
  const auto begun = Clock::now();
  const StatusOr<FilterAnswer> answer = Judge(body, call);
  const bool refused = answer.ok() && answer->nodes.empty();
  Count("filter",
        refused ? Status(StatusCode::kResourceExhausted, "no node fits") : answer.status(), begun);
  return answer.ok() ? WriteFilter(*answer) : WriteFilterFailure(answer.status());
}

StatusOr<FilterAnswer> Extender::Judge(const std::string& body, HandleCall& call) {
  const auto deadline = Clock::now() + options_.call_timeout;
  QRM_ASSIGN_OR_RETURN(NodesQuestion question, ParseNodesQuestion(body));
  QRM_ASSIGN_OR_RETURN(const SnapshotPtr snapshot, SnapshotFor(question.pod));
  const PodJudge judge(*snapshot, cache_.handles(), question.pod, call);
  FilterAnswer answer;
  for (const std::string& node : question.nodes) {
    QRM_RETURN_IF_ERROR(CheckTime(deadline));
    Refusal refusal = judge.Judge(node);
    if (refusal.why.empty()) {
      answer.nodes.push_back(node);
    } else {
      (refusal.lasts ? answer.unresolvable : answer.refused)[node] = std::move(refusal.why);
    }
  }
  waker_.OnJudged(question.pod, snapshot, answer);
  return answer;
}

// An error has no form here: kube-scheduler takes nodes without a score for 0.
std::string Extender::Prioritize(const std::string& body, HandleCall& call) {
  const auto begun = Clock::now();
  const StatusOr<std::vector<NodeScore>> scores = Score(body, call);
  Count("prioritize", scores.status(), begun);
  return WriteScores(scores.value_or(std::vector<NodeScore>()));
}

StatusOr<std::vector<NodeScore>> Extender::Score(const std::string& body, HandleCall& call) {
  const auto deadline = Clock::now() + options_.call_timeout;
  QRM_ASSIGN_OR_RETURN(NodesQuestion question, ParseNodesQuestion(body));
  QRM_ASSIGN_OR_RETURN(const SnapshotPtr snapshot, SnapshotFor(question.pod));
  const PodJudge judge(*snapshot, cache_.handles(), question.pod, call);
  std::vector<NodeScore> scores;
  scores.reserve(question.nodes.size());
  for (const std::string& node : question.nodes) {
    QRM_RETURN_IF_ERROR(CheckTime(deadline));
    scores.push_back({node, (judge.ScoreOf(node) + kScoreStep / 2) / kScoreStep});
  }
  return scores;
}

void Extender::Bind(const std::string& body, const Reply& reply) {
  const auto begun = Clock::now();
  const auto finish = [this, begun, reply](const Status& outcome) {
    Count("bind", outcome, begun);
    reply(WriteBind(outcome));
  };
  const StatusOr<BindQuestion> question = ParseBindQuestion(body);
  const Status ready = question.ok() ? may_judge_() : question.status();
  if (ready.ok()) {
    binder_.Bind(*question, finish);
  } else {
    finish(ready);
  }
}

// If the answer is unknown, kube-scheduler's own choice is kept.
std::string Extender::Preempt(const std::string& body) {
  const auto begun = Clock::now();
  const auto useful = KeepUseful(body);
  Count("preempt", useful.status(), begun);
  if (useful.ok()) {
    return WritePreempt(*useful);
  }
  const auto question = ParsePreemptQuestion(body);
  return WritePreempt(question.ok() ? question->victims
                                    : std::map<std::string, PreemptQuestion::Victims>());
}

StatusOr<std::map<std::string, PreemptQuestion::Victims>> Extender::KeepUseful(
    const std::string& body) {
  QRM_ASSIGN_OR_RETURN(PreemptQuestion question, ParsePreemptQuestion(body));
  QRM_RETURN_IF_ERROR(SnapshotFor(question.pod).status());
  cache_.Run([&](ClusterCache& now) {
    std::erase_if(question.victims, [&](const auto& node) {
      return !now.FitsWithout(question.pod, node.first, node.second.uids);
    });
  });
  if (!question.victims.empty()) {
    waker_.OnPreempted(question.pod.uid);
  }
  return std::move(question.victims);
}

StatusOr<SnapshotPtr> Extender::SnapshotFor(Pod& pod) {
  QRM_RETURN_IF_ERROR(may_judge_());
  QRM_RETURN_IF_ERROR(CheckSynced(*cache_.Load()));
  if (!cache_.AwaitVersion(kPods, pod.resource_version, Clock::now() + options_.catch_up)) {
    return Errorf(StatusCode::kUnavailable,
                  "cannot judge nodes: pod {}/{} has not been seen at version {} yet; try again in "
                  "a moment",
                  pod.pod_namespace, pod.name, pod.resource_version);
  }
  SnapshotPtr snapshot = cache_.Load();
  pod.annotations = snapshot->annotation_keys->KeptOf(pod.annotations);
  return snapshot;
}

Status Extender::CheckTime(Clock::time_point deadline) const {
  return Clock::now() < deadline
             ? OkStatus()
             : Errorf(StatusCode::kDeadlineExceeded,
                      "cannot judge nodes within {} ms; raise call-timeout and the extender's "
                      "httpTimeout, or lower percentageOfNodesToScore",
                      options_.call_timeout.count());
}

void Extender::Count(const char* call, const Status& outcome, Clock::time_point begun) {
  const bool refused = outcome.code() == StatusCode::kResourceExhausted;
  metrics_.Count(call, outcome.ok() ? "ok" : refused ? "refused" : "failed", Clock::now() - begun);
}

}  // namespace qrm::scheduler
