// An API server in memory for scripts: writes its kubeconfig, and puts the objects of its input.
//   qrm-api-server KUBECONFIG <lines of COLLECTION JSON
#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "test/support/fake_api_server.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: qrm-api-server KUBECONFIG\n";
    return 2;
  }
  const std::string file = argv[1];
  qrm::test::FakeApiServer server;
  const auto access = server.access();
  std::ofstream(file + ".ca") << access.authorities.text;
  std::ofstream(file) << "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:"
                      << access.server.port << "\", certificate-authority: " << file << ".ca}}]\n"
                      << "users: [{name: u, user: {token: t}}]\n"
                      << "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                      << "current-context: x\n";
  std::string collection;
  for (std::string body; std::cin >> collection && std::getline(std::cin, body);) {
    server.Put(collection, nlohmann::json::parse(body));
  }
  return 0;
}
