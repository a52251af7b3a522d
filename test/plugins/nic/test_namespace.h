// Network namespaces with devices, for tests that change them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"

namespace qrm::test {

/// A network namespace with a file, as ip-netns(8) makes them. Needs root, and a mount namespace
/// that may be changed: see OwnMounts.
class TestNamespace {
 public:
  /// Errors: kUnavailable with the system's word when it may not be made.
  static StatusOr<std::unique_ptr<TestNamespace>> Make(const std::string& path);
  ~TestNamespace() { Remove(); }
  TestNamespace(const TestNamespace&) = delete;
  TestNamespace& operator=(const TestNamespace&) = delete;

  /// Unmounts and removes the file. The namespace goes with its last user.
  void Remove();

  /// Each returns the error number, 0 when it is done.
  int AddVeth(const std::string& name, const std::string& peer) const;
  /// A pair with its other end in `other`.
  int AddVethTo(const std::string& name, const TestNamespace& other, const std::string& peer) const;
  int AddDummy(const std::string& name) const;
  /// A tap device that outlives its maker, whose speed can be set.
  int AddTap(const std::string& name) const;
  int SetUp(const std::string& name) const;
  int SetDown(const std::string& name) const;
  int AddAddress(const std::string& name, const std::string& ipv4) const;
  int RemoveAddress(const std::string& name, const std::string& ipv4) const;
  int SetSpeed(const std::string& name, uint32_t mbps) const;
  int Delete(const std::string& name) const;

 private:
  explicit TestNamespace(std::string path) : path_(std::move(path)) {}
  /// Runs `action`, which returns an error number, on a thread in the namespace.
  int Inside(const std::function<int()>& action) const;
  int SetFlags(const std::string& name, unsigned flags) const;
  int ChangeAddress(uint16_t type, uint16_t flags, const std::string& name,
                    const std::string& ipv4) const;

  const std::string path_;
};

/// Gives this process a private mount namespace; call it while the process has one thread.
/// False without permission.
bool OwnMounts();

}  // namespace qrm::test
