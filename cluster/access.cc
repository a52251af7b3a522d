// Reads kubeconfig files key by key.
#include "cluster/access.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "api/base/errorf.h"
#include "api/base/section.h"

namespace qrm::cluster {
namespace {

using config::Section;

StatusOr<std::string> FromBase64(const Section& section, const char* key) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) {
    return section.Error(key, "is not base64", "write it again with kubectl config --flatten");
  }
  const auto padding = static_cast<std::size_t>(text.ends_with("==")  ? 2
                                                : text.ends_with("=") ? 1
                                                                      : 0);
  bytes.resize(static_cast<std::size_t>(size) - (text.empty() ? 0 : padding));
  return bytes;
}

/// A file that is named without a slash in front lies beside the kubeconfig.
StatusOr<std::string> FileAt(const Section& section, const char* key) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  return text.empty() || text.front() == '/'
             ? text
             : (std::filesystem::path(section.file()).parent_path() / text).string();
}

StatusOr<Pem> ReadPem(const Section& section, const char* file_key, const char* data_key) {
  Pem pem;
  QRM_ASSIGN_OR_RETURN(pem.text, FromBase64(section, data_key));
  QRM_ASSIGN_OR_RETURN(pem.file, FileAt(section, file_key));
  return pem;
}

/// The entry `name` of a list such as `clusters`, whose content is under `key`.
StatusOr<Section> Entry(const Section& config, const char* list, const std::string& name,
                        const char* key) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> entries, config.Items(list));
  for (const Section& entry : entries) {
    QRM_ASSIGN_OR_RETURN(const std::string entry_name, entry.Text("name", ""));
    if (entry_name == name) {
      return entry.Child(key);
    }
  }
  return config.Error(list, fmt::format("has no entry named '{}'", name),
                      "add one, or choose another context");
}

Status ReadCluster(const Section& cluster, ClusterAccess& access) {
  QRM_ASSIGN_OR_RETURN(const bool insecure, cluster.Flag("insecure-skip-tls-verify", false));
  if (insecure) {
    return cluster.Error("insecure-skip-tls-verify", "is true, which is not supported",
                         "set certificate-authority-data");
  }
  if (cluster.Has("proxy-url")) {
    return cluster.Error("proxy-url", "is not supported", "reach the server without a proxy");
  }
  QRM_ASSIGN_OR_RETURN(const std::string server, cluster.Text("server", ""));
  const StatusOr<HttpsUrl> url = ParseHttpsUrl(server);
  if (!url.ok()) {
    return cluster.Error("server", fmt::format("is '{}', which is not an https address", server),
                         "write one such as https://10.0.0.1:6443");
  }
  access.server = *url;
  QRM_ASSIGN_OR_RETURN(access.server_name, cluster.Text("tls-server-name", ""));
  QRM_ASSIGN_OR_RETURN(access.authorities,
                       ReadPem(cluster, "certificate-authority", "certificate-authority-data"));
  return OkStatus();
}

Status ReadUser(const Section& user, ClusterAccess& access) {
  for (const char* key : {"exec", "auth-provider", "username", "as"}) {
    if (user.Has(key)) {
      return user.Error(key, "is not supported",
                        "use token, tokenFile or client-certificate with client-key");
    }
  }
  QRM_ASSIGN_OR_RETURN(access.token, user.Text("token", ""));
  QRM_ASSIGN_OR_RETURN(access.token_file, FileAt(user, "tokenFile"));
  QRM_ASSIGN_OR_RETURN(access.certificate,
                       ReadPem(user, "client-certificate", "client-certificate-data"));
  QRM_ASSIGN_OR_RETURN(access.key, ReadPem(user, "client-key", "client-key-data"));
  return OkStatus();
}

std::string FirstLine(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

StatusOr<ClusterAccess> InClusterAccess(const Environment& environment,
                                        const std::string& directory) {
  ClusterAccess access;
  access.server.host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  access.server.port = port.empty() ? access.server.port : port;
  access.token_file = directory + "/token";
  access.authorities.file = directory + "/ca.crt";
  if (access.server.host.empty() || !std::filesystem::exists(access.token_file)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot find the API server: this is not a pod with a service account; set "
                  "kubeconfig");
  }
  const std::string name = FirstLine(directory + "/namespace");
  access.default_namespace = name.empty() ? access.default_namespace : name;
  return access;
}

StatusOr<ClusterAccess> ReadKubeconfig(const std::string& file, const std::string& context) {
  QRM_ASSIGN_OR_RETURN(const Section config, Section::Load(file));
  QRM_ASSIGN_OR_RETURN(const std::string current, config.Text("current-context", ""));
  QRM_ASSIGN_OR_RETURN(const Section chosen,
                       Entry(config, "contexts", context.empty() ? current : context, "context"));
  QRM_ASSIGN_OR_RETURN(const std::string cluster_name, chosen.Text("cluster", ""));
  QRM_ASSIGN_OR_RETURN(const std::string user_name, chosen.Text("user", ""));
  QRM_ASSIGN_OR_RETURN(const Section cluster, Entry(config, "clusters", cluster_name, "cluster"));
  QRM_ASSIGN_OR_RETURN(const Section user, Entry(config, "users", user_name, "user"));
  ClusterAccess access;
  QRM_ASSIGN_OR_RETURN(access.default_namespace, chosen.Text("namespace", "default"));
  QRM_RETURN_IF_ERROR(ReadCluster(cluster, access));
  QRM_RETURN_IF_ERROR(ReadUser(user, access));
  return access;
}

}  // namespace qrm::cluster
