// Damages a SQLite database and its log while no process has it open.
#pragma once

#include <random>
#include <string>

#include "api/base/status.h"

namespace qrm::test {

/// The damage that was done.
struct DamageReport {
  std::string what;
  bool forbidden = false;  ///< nothing can be committed until Undo
};

/// Damages databases, each kind in turn, at places that a seed decides.
class FileDamage {
 public:
  explicit FileDamage(uint32_t seed) : random_(seed) {}

  /// Damages `database` or its log in the `round`-th way. Errors: the disk's.
  StatusOr<DamageReport> Apply(const std::string& database, int round);

  /// Gives back permissions that Apply took away.
  Status Undo();

 private:
  using Way = Status (FileDamage::*)(const std::string& path);
  struct Kind;
  static const Kind kKinds[];

  std::size_t Draw(std::size_t below) { return random_() % below; }

  Status Flip(const std::string& path);
  Status Truncate(const std::string& path);
  Status ZeroPage(const std::string& path);
  Status Remove(const std::string& path);
  Status Empty(const std::string& path);
  Status BecomeDirectory(const std::string& path);
  Status BecomeForeign(const std::string& path);
  Status BecomeNewer(const std::string& path);
  Status Forbid(const std::string& path);

  std::mt19937 random_;
  std::string forbidden_;
};

}  // namespace qrm::test
