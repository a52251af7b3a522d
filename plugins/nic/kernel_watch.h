// Follows the interfaces of network namespaces.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/base/file_descriptor.h"
#include "plugins/nic/facts_watch.h"
#include "plugins/nic/namespace_sockets.h"
#include "plugins/sdk/directory_watch.h"

namespace qrm::nic {

/// How often it looks although nothing is told.
struct LookPeriods {
  /// For what the kernel tells nobody, such as a speed that somebody sets.
  std::chrono::milliseconds always{10'000};
  /// While a namespace is missing: that its file becomes one is not told.
  std::chrono::milliseconds missing{1'000};
};

/// Hears of links and addresses by rtnetlink, and of files of namespaces by inotify.
///
/// Threads: Read before Start, by the owner; then a thread of its own, which takes no signals.
class KernelWatch final : public FactsWatch {
 public:
  /// `namespaces` are paths; the program's own is always among those that are followed.
  explicit KernelWatch(const std::vector<std::string>& namespaces, LookPeriods periods = {});
  ~KernelWatch() override;
  KernelWatch(const KernelWatch&) = delete;
  KernelWatch& operator=(const KernelWatch&) = delete;

  /// What is so now. A namespace that cannot be looked into is left out, and logged once.
  NicFacts Read();

  void Start(std::function<void(const NicFacts&)> on_change) override;

 private:
  void Run();
  bool Wait();
  bool StopsWithin(std::chrono::milliseconds time) const;
  StatusOr<NamespaceFacts> ReadOne(const std::string& path);
  void Complain(const std::string& path, const Status& status);

  const LookPeriods periods_;
  const FileDescriptor stop_;  ///< readable when the thread is to end
  /// By path; null while there is none.
  std::map<std::string, std::unique_ptr<NamespaceSockets>> sockets_;
  std::vector<std::unique_ptr<sdk::DirectoryWatch>> directories_;
  std::map<std::string, std::string> complaints_;  ///< what is wrong now
  NicFacts known_;
  std::function<void(const NicFacts&)> on_change_;
  std::thread thread_;
};

}  // namespace qrm::nic
