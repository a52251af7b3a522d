// A disk that loses power: an SQLite VFS over the real one that knows what was synced, forgets the
// rest, and fails on demand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace qrm::test {

/// Registers itself as a VFS under name(). Threads: one.
class LossyDisk {
 public:
  LossyDisk();
  ~LossyDisk();
  LossyDisk(const LossyDisk&) = delete;
  LossyDisk& operator=(const LossyDisk&) = delete;

  const std::string& name() const { return name_; }

  /// From now on writes and truncations return `code` (such as SQLITE_FULL), until SQLITE_OK.
  void FailWrites(int code) { write_code_ = code; }
  void FailSyncs(int code) { sync_code_ = code; }

  /// The power goes after `operations` more writes, truncations and syncs; everything fails then.
  void CutPowerAfter(int operations) { operations_left_ = operations; }
  /// Writes to the real disk all that was synced, and of each file's later writes a random part, in
  /// 512-byte sectors, in any order. Every file must be closed.
  void PowerUp(std::mt19937& random);

  int syncs() const { return syncs_; }

 private:
  friend struct LossyFile;
  struct Write {
    int64_t offset = 0;
    std::string data;
    bool truncates = false;
  };
  /// One file's content as the platters have it, and what the cache holds beyond that.
  struct Platter {
    std::string durable;
    bool name_is_durable = false;
    std::vector<Write> unsynced;
  };

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out);
  static int Delete(sqlite3_vfs* vfs, const char* path, int sync_directory);
  /// The result of the next operation.
  int Spend(int code);
  static void Apply(std::string& content, const Write& write);
  static std::vector<Write> Sectors(const Write& write);

  std::string name_;
  sqlite3_vfs* real_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  std::map<std::string, Platter> platters_;
  int write_code_ = SQLITE_OK;
  int sync_code_ = SQLITE_OK;
  int operations_left_ = -1;  // -1: no end in sight
  int syncs_ = 0;
};

}  // namespace qrm::test
