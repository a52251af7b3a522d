// Looks keys up, and compares with the few globs.
#include "scheduler/cache/annotation_keys.h"

#include <algorithm>
#include <map>

#include "api/base/glob.h"
#include "api/pod_texts.h"

namespace qrm::scheduler {

bool AnnotationKeys::Read(const std::string& glob) {
  if (glob.empty() || keys_.size() + globs_.size() >= kMostKeys) {
    return false;
  }
  return glob.find('*') == std::string::npos ? keys_.insert(glob).second
                                             : globs_.insert(glob).second;
}

StringMap AnnotationKeys::KeptOf(const StringMap& annotations) const {
  std::map<std::string_view, std::string_view> read;
  for (const auto& [key, value] : annotations) {
    if (Reads(key)) {
      read.emplace(key, value);
    }
  }
  StringMap kept = Bounded(read);
  for (const std::string& key : decisions_) {
    const auto found = annotations.find(key);
    if (found != annotations.end() && found->second.size() <= kMostDecisionBytes) {
      kept.emplace(key, found->second);
    }
  }
  return kept;
}

bool AnnotationKeys::Reads(std::string_view key) const {
  return keys_.contains(key) ||
         std::any_of(globs_.begin(), globs_.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, key); });
}

}  // namespace qrm::scheduler
