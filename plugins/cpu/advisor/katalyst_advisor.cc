// Queries Katalyst's advisor, and passes its advice on.
#include "plugins/cpu/advisor/katalyst_advisor.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "api/proto/cpuadvisor/cpu.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/grpc_status.h"
#include "api/rpc/unary_call.h"
#include "plugins/cpu/advisor/katalyst_words.h"

namespace qrm::cpu {
namespace {

constexpr int kLeaseInQuestions = 3;

Status Explained(const Status& status, const std::string& socket) {
  if (status.code() == StatusCode::kUnimplemented) {
    return Errorf(
        StatusCode::kUnimplemented,
        "the advisor at {} does not implement GetAdvice; use a newer version of Katalyst's agent",
        socket);
  }
  return Errorf(status.code(), "the advisor at {} does not answer; check that it runs: {}", socket,
                Quoted(MessageOf(status)));
}

}  // namespace

KatalystAdvisor::KatalystAdvisor(const KatalystRule& rule, AdviceDesk& desk)
    : rule_(rule),
      desk_(desk),
      channel_(rpc::UnixChannel(rule.socket)),
      thread_([this] { Run(); }) {}

KatalystAdvisor::~KatalystAdvisor() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    if (call_ != nullptr) {
      rpc::Cancel(*call_);
    }
  }
  stopped_.NotifyAll();
  thread_.join();
}

std::map<int, double> KatalystAdvisor::headroom() const {
  MutexLock lock(mutex_);
  return headroom_;
}

void KatalystAdvisor::Run() {
  while (true) {
    Tell(Ask());
    MutexLock lock(mutex_);
    if (stopped_.WaitUntil(mutex_, DeadlineAfter(rule_.every),
                           [this]() QRM_REQUIRES(mutex_) { return is_stopping_; })) {
      return;
    }
  }
}

Status KatalystAdvisor::Ask() {
  const auto node = desk_.Sight();
  if (node == nullptr) {
    return OkStatus();
  }
  const std::shared_ptr<grpc::ClientContext> context = rpc::NewContext(DeadlineAfter(rule_.every));
  {
    MutexLock lock(mutex_);
    if (is_stopping_) {
      return OkStatus();
    }
    call_ = context;
  }
  cpuadvisor::GetAdviceResponse answer;
  const Status answered = rpc::FromGrpc(cpuadvisor::CPUAdvisor::NewStub(channel_)->GetAdvice(
      context.get(), QuestionOf(*node), &answer));
  {
    MutexLock lock(mutex_);
    call_.reset();
    if (is_stopping_) {
      return OkStatus();
    }
  }
  return answered.ok() ? Heed(*node, answer) : Explained(answered, rule_.socket);
}

Status KatalystAdvisor::Heed(const NodeSight& node, const cpuadvisor::GetAdviceResponse& answer) {
  QRM_ASSIGN_OR_RETURN(KatalystAdvice advice, AdviceIn(answer, node));
  {
    MutexLock lock(mutex_);
    headroom_ = std::move(advice.headroom);
  }
  if (std::string unknown = fmt::format("{}", fmt::join(advice.unknown, ", "));
      unknown != unknown_) {
    if (!unknown.empty()) {
      log::Info("Katalyst's advisor names pools that are not elastic on this node",
                {{"pools", Quoted(unknown)}});
    }
    unknown_ = std::move(unknown);
  }
  return desk_
      .Advise({.advisor = "katalyst",
               .generation = node.advised.generation,
               .lease = kLeaseInQuestions * rule_.every,
               .entries = std::move(advice.pools)})
      .status();
}

void KatalystAdvisor::Tell(const Status& asked) {
  if (std::string problem = MessageOf(asked); problem != problem_) {
    if (!asked.ok()) {
      log::Warning("Katalyst's advisor does not size pools", {{"error", problem}});
    }
    problem_ = std::move(problem);
  }
}

}  // namespace qrm::cpu
