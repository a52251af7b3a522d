// The types of QoS-class resources that this node offers.
#pragma once

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

/// Owns the providers. Without any, nothing about classes is read or written.
///
/// Threads: any.
class ClassBook {
 public:
  using Providers = std::vector<std::unique_ptr<sdk::ClassProvider>>;

  ClassBook(ClassesOptions options, Providers providers);

  bool empty() const { return providers_.empty(); }
  const Providers& providers() const { return providers_; }
  /// As of the latest Update, by name.
  std::shared_ptr<const OfferedTypes> Types() const;
  /// Lists the types anew.
  void Update();

  /// Takes over who may have what, by default or at all, and how many. Errors: kFailedPrecondition
  /// when types come or go by `options`, or the file of one is another: nothing changes then.
  Status TakeRules(ClassesOptions options);

  /// What a container is made with to have `classes` (type -> class). Errors: the provider's, and
  /// kAlreadyExists when two types set the same thing differently.
  StatusOr<sdk::ClassOptions> Resolve(const StringMap& classes) const;

 private:
  sdk::ClassProvider* Find(const std::string& type) const;

  const Providers providers_;
  const std::vector<std::string> names_;  // of the providers' types
  Mutex update_mutex_;                    // of two Updates, the later one is the newer
  mutable Mutex mutex_;
  std::shared_ptr<const ClassesOptions> options_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const OfferedTypes> types_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
