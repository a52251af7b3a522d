// The keys of publishing and their checks.
#include "manager/publish/publish_options.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words = {
      kPublishTopology,       kPublishResources,  kPublishClasses,
      kPublishClassResources, kPublishPodClasses, kPublishPodFailures,
      kPublishNodeConfig,     kPublishDrivers,    kPublishEvents};
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
                    "cannot publish '{}': it is not a value of publish; write {}", word,
                    config::EnumerateWords(Words(), "or"));
    }
  }
  return OkStatus();
}

std::vector<config::ConfigKey> PublishKeys(PublishOptions& options) {
  return {
      config::WordsKey("publish", options.what, "list of " + config::EnumerateWords(Words(), "and"),
                       "What qrmd writes to the API server; empty: nothing. `topology`: a "
                       "NodeResourceTopology. `extended-resources`: resources of plugins that ask "
                       "for it, in Node status. `classes`: types of classes, in an annotation of "
                       "the Node. `class-resources`: classes with a capacity, in Node status. "
                       "`pod-classes`: the classes of each pod, in an annotation of the pod. "
                       "`pod-failures`: the end of pods that are rejected with `reject-as: fail`. "
                       "`node-config`: the data for qrm-scheduler, in an annotation of the Node. "
                       "`drivers`: which compute drivers are ready, in an annotation of the Node. "
                       "`events`: a warning event on each rejected pod."),
      config::TextKey("node-name", options.node_name, "name; empty: the host's name",
                      "The name of this node's Node object."),
      config::TextKey("kubeconfig", options.kubeconfig,
                      "path; empty: the service account of the pod",
                      "The kubeconfig file with the API server's address and credentials, for "
                      "`publish`."),
      config::DurationKey("publish-interval", options.interval, {"100ms", "1m"},
                          "How often qrmd compares the state with the published objects. It is "
                          "also the shortest time between two writes of an object."),
      config::DurationKey("publish-grace", options.grace, {"0s", "24h"},
                          "How long the resources of a stopped plugin stay published."),
      config::DurationKey("publish-heartbeat", options.heartbeat, {"10s", "1h"},
                          "How often qrmd writes annotation qrm.io/published-at to the Node, with "
                          "`node-config`, `classes` or `drivers`. qrm-scheduler then knows when "
                          "these are too old (its key published-within)."),
  };
}

}  // namespace qrm::manager
