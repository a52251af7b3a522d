// The types of QoS-class resources that this node offers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_choice.h"
#include "manager/classes/class_options.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// Owns the providers. Without providers, nothing about classes is read or written.
///
/// Threads: any.
class ClassBook {
 public:
  using Providers = std::vector<std::unique_ptr<sdk::ClassProvider>>;

  ClassBook(ClassesOptions options, Providers providers);

  bool empty() const { return providers_.empty(); }
  const Providers& providers() const { return providers_; }
  /// The types as of the latest Update, by name.
  std::shared_ptr<const OfferedTypes> Types() const;
  /// Lists the types again.
  void Update();

  /// Applies new defaults, permissions and capacities. Errors: kFailedPrecondition if `options`
  /// adds or removes types or changes the file of a type: nothing changes then.
  Status TakeRules(ClassesOptions options);

  /// The creation values of a container with `classes` (type -> class). Errors: the provider's, and
  /// kAlreadyExists if two types set the same value.
  StatusOr<sdk::ClassOptions> Resolve(const StringMap& classes) const;

 private:
  const Providers providers_;
  std::map<std::string, const sdk::ClassProvider*> by_name_;
  Mutex update_mutex_;  // the later of two Updates must store the newer list
  mutable Mutex mutex_;
  std::shared_ptr<const ClassesOptions> options_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const OfferedTypes> types_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
