// Follows the interfaces of network namespaces, and the nic plugin for the NICs of its own machine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/base/file_descriptor.h"
#include "api/base/status.h"
#include "plugins/nic/config.h"
#include "plugins/nic/facts.h"
#include "plugins/nic/namespace_sockets.h"
#include "plugins/sdk/directory_watch.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// How often the interfaces are read without a message of the kernel.
struct LookPeriods {
  /// For changes that the kernel does not report, such as a new speed.
  std::chrono::milliseconds always{10'000};
  /// While a namespace is missing: the kernel does not report that its file becomes a namespace.
  std::chrono::milliseconds missing{1'000};
};

/// Receives changes of links and addresses by rtnetlink, and of namespaces' files by inotify.
///
/// Threads: Read before Start, by the owner; then its own thread, which takes no signals.
class KernelWatch final : public FactsWatch {
 public:
  /// `namespaces` are paths; the program's own namespace is always followed, too.
  explicit KernelWatch(const std::vector<std::string>& namespaces, LookPeriods periods = {});
  ~KernelWatch() override;
  KernelWatch(const KernelWatch&) = delete;
  KernelWatch& operator=(const KernelWatch&) = delete;

  /// The current state. A namespace that cannot be read is left out, and logged once.
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
  /// By path; null while the namespace is missing.
  std::map<std::string, std::unique_ptr<NamespaceSockets>> sockets_;
  std::vector<std::unique_ptr<sdk::DirectoryWatch>> directories_;
  std::map<std::string, std::string> complaints_;  ///< the current problems
  NicFacts known_;
  std::function<void(const NicFacts&)> on_change_;
  std::thread thread_;
};

/// The kernel's current state of the NICs of `config`. Logs and leaves out what cannot be read.
NicFacts ReadNicFacts(const NicPluginConfig& config);

/// MakeNicPlugin with the kernel's state, which it follows as `config.follow` says. It follows
/// nothing if `machine` is only described. Errors: kInvalidArgument when the configuration does not
/// fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeLiveNicPlugin(NicPluginConfig config,
                                                                 const Machine& machine);

}  // namespace qrm::nic
