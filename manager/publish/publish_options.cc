// The keys, with what their words mean.
#include "manager/publish/publish_options.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words = {kPublishTopology,   kPublishResources,
                                                 kPublishClasses,    kPublishClassResources,
                                                 kPublishNodeConfig, kPublishEvents};
  return words;
}

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool PublishOptions::Has(const char* word) const {
  return Contains(what, word);
}

std::string NodeNameOf(const PublishOptions& options) {
  if (!options.node_name.empty()) {
    return options.node_name;
  }
  constexpr std::size_t kMostBytes = 256;
  std::array<char, kMostBytes> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Status CheckPublish(const PublishOptions& options) {
  for (const std::string& word : options.what) {
    if (!Contains(Words(), word)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot publish '{}': there is no such thing; write {} in publish", word,
                    config::EnumerateWords(Words(), "or"));
    }
  }
  return OkStatus();
}

std::vector<config::ConfigKey> PublishKeys(PublishOptions& options) {
  return {
      config::WordsKey("publish", options.what, "list of " + config::EnumerateWords(Words(), "and"),
                       "What the API server is told: a NodeResourceTopology (topology), resources "
                       "of plugins that ask for it in Node status (extended-resources), types of "
                       "classes as an annotation of the Node (classes), classes of limited number "
                       "in Node status (class-resources), what qrm-scheduler places by as an "
                       "annotation of the Node (node-config), and a warning on each pod that is "
                       "refused (events). Empty: nothing."),
      config::TextKey("node-name", options.node_name, "name; empty: the host's name",
                      "The name of this node's Node object."),
      config::TextKey("kubeconfig", options.kubeconfig,
                      "path; empty: the service account of the pod",
                      "How the API server is reached, for publish."),
      config::DurationKey("publish-interval", options.interval, {"100ms", "1m"},
                          "How often the state is compared with what was published; two writes of "
                          "an object are as far apart at least."),
      config::DurationKey("publish-grace", options.grace, {"0s", "24h"},
                          "How long the resources of a plugin that is gone stay published."),
  };
}

}  // namespace qrm::manager
