// The least that durability costs: one write and one sync.
#pragma once

#include <cstddef>
#include <string>

namespace qrm::test {

/// A log of fixed-size records, as a database writes one, but nothing else.
class SyncedLog {
 public:
  enum class Length {
    kGrows,  ///< with each record, and a sync keeps the new size too
    /// It has its full length from the beginning and is written round and round, as a database's
    /// log is after its first round: the least cost of any sync.
    kStays,
  };
  SyncedLog(const std::string& path, std::size_t record_bytes, Length length);
  ~SyncedLog();
  SyncedLog(const SyncedLog&) = delete;
  SyncedLog& operator=(const SyncedLog&) = delete;

  /// One record, durable when it returns.
  void Append();

 private:
  int fd_;
  std::string record_;
  Length length_;
  std::size_t end_ = 0;
};

}  // namespace qrm::test
