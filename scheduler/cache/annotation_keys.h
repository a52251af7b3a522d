// Which annotations of pods the cache keeps: those with a reader.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "api/resource.h"

namespace qrm::scheduler {

/// Tenants may write 256 KiB of annotations on each pod. Annotations without a reader are dropped,
/// and the rest is bounded as on the nodes, so that both read the same.
///
/// Threads: a value.
class AnnotationKeys {
 public:
  /// The most keys that are kept: nodes may name keys of their own.
  static constexpr std::size_t kMostKeys = 128;
  /// Of one annotation that we wrote ourselves.
  static constexpr std::size_t kMostDecisionBytes = 64 << 10;

  /// Keeps annotations that `glob` describes; a star stands for any text. False when they are kept
  /// already, and when there are kMostKeys.
  bool Read(const std::string& glob);
  /// Keeps an annotation that ExtendedResource::Decide writes, which may be long.
  void ReadDecision(const std::string& key) { decisions_.insert(key); }

  /// The annotations that have a reader.
  StringMap KeptOf(const StringMap& annotations) const;

 private:
  bool Reads(std::string_view key) const;

  std::set<std::string, std::less<>> keys_;
  std::set<std::string> globs_;  // with a star
  std::set<std::string> decisions_;
};

}  // namespace qrm::scheduler
