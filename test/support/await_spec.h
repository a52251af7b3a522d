// Waiting for the lookup of a source of specs.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "manager/demand/spec_source.h"

namespace qrm::test {

/// The spec of the pod in `source` after its lookup, or after `limit`.
inline manager::PodSpecPtr AwaitSpec(manager::SpecSource& source, const std::string& uid,
                                     std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto looked = std::make_shared<std::promise<void>>();
  source.AfterLooking(uid, DeadlineAfter(limit), [looked] { looked->set_value(); });
  looked->get_future().wait_for(limit);
  return source.Find(uid);
}

}  // namespace qrm::test
