// The advisor of Katalyst's agent, which is asked how large pools are to be.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "plugins/cpu/advisor/desk.h"

namespace cpuadvisor {
class GetAdviceResponse;
}  // namespace cpuadvisor
namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace qrm::cpu {

/// Asks every `KatalystRule::every`, and advises what is answered. Where there is no answer, advice
/// ends with its lease.
class KatalystAdvisor {
 public:
  /// `desk` outlives it.
  KatalystAdvisor(const KatalystRule& rule, AdviceDesk& desk);
  /// Ends the question that is under way.
  ~KatalystAdvisor();
  KatalystAdvisor(const KatalystAdvisor&) = delete;
  KatalystAdvisor& operator=(const KatalystAdvisor&) = delete;

  /// CPUs that batch work may count on, by NUMA node, as of the last answer that said so.
  /// Threads: any.
  std::map<int, double> headroom() const;

 private:
  void Run();
  /// One question; ends within KatalystRule::every.
  Status Ask();
  Status Heed(const NodeSight& node, const cpuadvisor::GetAdviceResponse& answer);
  /// Says in the log what has become of the questions, where that is news.
  void Tell(const Status& asked);

  const KatalystRule rule_;
  AdviceDesk& desk_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::string problem_;  // why the last question was for nothing
  std::string unknown_;  // pools of the last answer that the node does not have
  mutable Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::shared_ptr<grpc::ClientContext> call_ QRM_GUARDED_BY(mutex_);  // under way
  std::map<int, double> headroom_ QRM_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace qrm::cpu
