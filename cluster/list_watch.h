// Follows all objects of one kind: lists them, watches them, and begins again where it must.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "cluster/api_client.h"

namespace qrm::cluster {

/// Gets the objects, in order. Threads: that of the ListWatch.
class ObjectListener {
 public:
  virtual ~ObjectListener() = default;

  /// A consistent list is about to be asked for. Items of one that did not end do not count.
  virtual void OnListBegin() = 0;
  virtual void OnItem(const nlohmann::json& object) = 0;
  /// These were all: what is not among them is gone.
  virtual void OnListEnd(const std::string& version) = 0;

  virtual void OnSet(const nlohmann::json& object) = 0;
  virtual void OnDelete(const nlohmann::json& last_state) = 0;
  /// Nothing else has changed up to this version.
  virtual void OnVersion(const std::string& version) = 0;
};

struct ListWatchOptions {
  std::string path;            ///< such as "/api/v1/pods"
  std::string field_selector;  ///< empty: all objects
  int page_size = 500;         ///< objects; halved for the rest of a list whose pages are too large
  std::size_t most_page_bytes = std::size_t{16} << 20;  ///< etcd takes objects of 1.5 MB
  std::chrono::milliseconds first_backoff{200};
  std::chrono::milliseconds most_backoff{30'000};
  /// The server says something at least once a minute; after this it is taken for dead.
  std::chrono::milliseconds silence{180'000};
};

/// Its state, for readiness and metrics.
struct ListWatchStatus {
  bool listed = false;  ///< a list has come to its end
  Status trouble;       ///< OK while a watch is open, or was to be opened again at once
  std::chrono::steady_clock::time_point trouble_since;
  uint64_t lists = 0;
  uint64_t watches = 0;
};

/// Reports every object and every change, as long as it lives. A watch that ends is opened again
/// from the last version. All objects are listed again if the server no longer has that version
/// (410), is silent, or is behind that version because older data was restored. Waits double while
/// it fails.
///
/// Threads: that of `io`; status() any.
/// Source: Kubernetes, "Efficient detection of changes".
class ListWatch {
 public:
  /// The references outlive it.
  ListWatch(boost::asio::io_context& io, ApiClient& client, ListWatchOptions options,
            ObjectListener& listener);
  /// The listener gets nothing afterwards.
  ~ListWatch();
  ListWatch(const ListWatch&) = delete;
  ListWatch& operator=(const ListWatch&) = delete;

  void Start();
  ListWatchStatus status() const;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::cluster
