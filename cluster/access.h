// How an API server is reached and who we are to it, as kubeconfig files and pods say.
#pragma once

#include <functional>
#include <string>

#include "api/base/status.h"
#include "api/http/https_url.h"

namespace qrm::cluster {

/// Certificates or a key in PEM: the text, or else the file, which may be replaced at any time.
struct Pem {
  std::string text;
  std::string file;

  bool empty() const { return text.empty() && file.empty(); }
};

struct ClusterAccess {
  HttpsUrl server;
  std::string server_name;  ///< what its certificate is for; empty: the host
  Pem authorities;          ///< empty: the system's
  std::string token;
  std::string token_file;  ///< in place of `token`
  Pem certificate;         ///< ours, with `key`; empty: none
  Pem key;
  std::string default_namespace = "default";
};

/// The value of an environment variable; empty when it is not set.
using Environment = std::function<std::string(const std::string& name)>;

/// What every pod has: the service's address from `environment`, and token and authority from
/// `directory`. Errors: kFailedPrecondition outside of a cluster.
/// Source: Kubernetes, "Accessing the Kubernetes API from a Pod".
StatusOr<ClusterAccess> InClusterAccess(const Environment& environment,
                                        const std::string& directory);

/// What `context` of a kubeconfig file says, or without one its current context. Errors:
/// kNotFound, kInvalidArgument with file and line; also for what is not supported: programs that
/// print credentials (exec), proxies, and servers whose certificate is not to be verified.
StatusOr<ClusterAccess> ReadKubeconfig(const std::string& file, const std::string& context);

}  // namespace qrm::cluster
