// A source of specs that answers from its cache.
#pragma once

#include <string>
#include <utility>

#include "manager/demand/spec_cache.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

class CachedSpecs : public SpecSource {
 public:
  PodSpecPtr Find(const std::string& uid) const override { return cache().Find(uid); }
  uint64_t revision() const override { return cache().revision(); }
  PodSpecPtr FindMirror(const std::string& static_uid, const std::string& pod_namespace,
                        const std::string& name) const override {
    return cache().FindMirror(static_uid, pod_namespace, name);
  }
  void AfterLooking(const std::string& uid, Deadline deadline,
                    std::function<void()> done) override {
    cache().AfterLooking(uid, deadline, std::move(done));
  }

 private:
  virtual SpecCache& cache() const = 0;
};

}  // namespace qrm::manager
