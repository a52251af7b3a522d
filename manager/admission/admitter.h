// Decides what a container gets: asks the plugins, merges their hints, checks and commits the
// result.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/clock.h"
#include "api/status.h"
#include "manager/admission/pod_source.h"
#include "manager/admission/releaser.h"
#include "manager/admission/run_options.h"
#include "manager/node_status.h"
#include "manager/registry/plugins.h"
#include "manager/state_loop.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::manager {

/// A resource that containers get without asking for it in their spec: CRI and NRI do not carry
/// extended resources.
struct ImplicitResource {
  std::string resource;
  std::set<std::string> roles;  ///< pods of these roles get it
  std::string annotation;       ///< pods with this annotation, not empty and not "false", get it
};

struct AdmissionOptions {
  MergeOptions merge;
  /// The name by which a pod asks for a resource -> the name its plugin is registered under.
  StringMap resource_names;
  std::vector<ImplicitResource> implicit_resources;
  /// Resources, by their plugins' names, that every container uses: one that requests none asks for
  /// an amount of 0, so that it is kept off what others own.
  std::vector<std::string> native_resources = {"cpu", "memory"};
  std::set<std::string> skipped_namespaces;
  std::string skip_annotation = "katalyst.kubewharf.io/skip_qrm_admit";
  std::chrono::milliseconds plugin_call_deadline{500};
};

/// The walk of one container. Nothing of two admissions interleaves, because each runs to its end
/// on the state loop.
///
/// Threads: the state loop only.
class Admitter {
 public:
  /// When the container gets the values.
  enum class Moment {
    kAtCreation,    ///< with the answer, before its first instruction
    kAfterTheFact,  ///< it runs already: the reconciler applies them
  };

  /// `state`, `plugins`, `releaser`, `machine` and `clock` outlive the admitter; `listener` may be
  /// empty.
  struct Parts {
    StateLoop& state;
    Plugins& plugins;
    Releaser& releaser;
    const Machine& machine;
    const Clock& clock;
    AdmissionListener listener;
  };
  Admitter(Parts parts, AdmissionOptions options);

  /// What to run the container with; it is durable and published then. A repeated request is
  /// answered from the state; a container that no plugin serves, or that is to be skipped, gets
  /// nothing and is not recorded.
  /// Errors: one sentence that names pod, container, resource, cause and cure. All that plugins
  /// gave for this call is released, and the checkpoint is as before but for the trace.
  StatusOr<RunOptions> Admit(const ContainerDemand& demand, Moment moment, Deadline deadline);

 private:
  struct Draft;

  Status SelectPlugins(Draft& draft);
  Status SelectPlugin(Draft& draft, const std::string& name, double amount);
  void AddNativeResources(std::map<std::string, double>& requests) const;
  const std::string& PluginNameOf(const std::string& requested) const;
  std::string ReasonToSkip(const Draft& draft) const;
  Status Place(Draft& draft);
  Status CollectHints(Draft& draft);
  Status ChooseHint(Draft& draft);
  Status Allocate(Draft& draft);
  Status Validate(Draft& draft);
  Status Commit(Draft& draft);

  RunOptions Repeat(const Draft& draft);
  RunOptions Skip(Draft& draft, const std::string& reason);
  Status Reject(Draft& draft, const Status& cause);
  checkpoint::DecisionTrace MakeTrace(const Draft& draft) const;
  void KeepTraceLater(const Draft& draft);
  void Tell(const Draft& draft, AdmissionEvent::Result result) const;
  Deadline CallDeadline(const Draft& draft) const;

  Parts parts_;
  const AdmissionOptions options_;
};

}  // namespace qrm::manager
