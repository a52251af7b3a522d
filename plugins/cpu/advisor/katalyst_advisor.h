// The client of the advisor in Katalyst's agent.
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

/// Queries the advisor every `KatalystRule::every`, and passes its advice on. Without an answer,
/// the advice ends with its lease.
class KatalystAdvisor {
 public:
  /// `desk` outlives it.
  KatalystAdvisor(const KatalystRule& rule, AdviceDesk& desk);
  /// Cancels the query in progress.
  ~KatalystAdvisor();
  KatalystAdvisor(const KatalystAdvisor&) = delete;
  KatalystAdvisor& operator=(const KatalystAdvisor&) = delete;

  /// CPUs by NUMA node that batch work can count on, from the last answer that had them.
  /// Threads: any.
  std::map<int, double> headroom() const;

 private:
  void Run();
  /// One query; ends within KatalystRule::every.
  Status Ask();
  Status Heed(const NodeSight& node, const cpuadvisor::GetAdviceResponse& answer);
  /// Logs the result of the query, if it is new.
  void Tell(const Status& asked);

  const KatalystRule rule_;
  AdviceDesk& desk_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::string problem_;  // why the last query failed
  std::string unknown_;  // pools of the last answer that are not on this node
  mutable Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::shared_ptr<grpc::ClientContext> call_ QRM_GUARDED_BY(mutex_);  // in progress
  std::map<int, double> headroom_ QRM_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace qrm::cpu
