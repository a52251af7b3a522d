// An API server with the faults of a real one, in memory, over TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/access.h"

namespace qrm::test {

/// Keeps objects of any kind by their paths: lists them in pages, watches, creates, updates,
/// patches and deletes them, and binds pods, with versions and answers as the real one has them.
/// A collection is named by its path without a namespace, such as "/api/v1/pods".
///
/// Threads: any; each connection has its own.
class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  cluster::ClusterAccess access() const;
  /// Writes a kubeconfig for it, and its certificate, into `directory`. Returns the file's path.
  std::string WriteKubeconfig(const std::string& directory) const;
  /// Requests with another token get 401. Empty: no token is needed.
  void SetToken(const std::string& token);

  /// Creates or changes an object, which needs no more than its metadata.name, and notifies
  /// watches.
  void Put(const std::string& collection, nlohmann::json object);
  void Delete(const std::string& collection, const std::string& key);
  /// The object "NAME" or "NAMESPACE/NAME"; null when it does not exist.
  nlohmann::json Find(const std::string& collection, const std::string& key) const;

  /// Watches end in the middle of a line.
  void CutWatches();
  /// Versions up to now are too old for watches.
  void ForgetHistory();
  /// Frees the memory of requests and of events, all of which watches must have had.
  void DropHistory();
  /// Sends watches the current version, and nothing else.
  void SendBookmarks();
  /// Restores the state of that version, as after a restore of etcd; watches are cut.
  void RestoreTo(uint64_t version);
  uint64_t version() const;
  /// Streams come in pieces of a few bytes.
  void SendInPieces();

  /// The next `count` requests get this status and Retry-After (0: none).
  void Refuse(int count, unsigned status, int retry_after_seconds = 0);
  /// The next `count` requests except GET are carried out, and get no answer.
  void LoseAnswers(int count);
  /// Requests except GET wait, before they are carried out, until they may continue.
  void HoldWrites();
  void LetWritesGo();

  /// "METHOD TARGET" of all requests so far.
  std::vector<std::string> requests() const;
  int connections() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
