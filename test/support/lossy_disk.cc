// The real file always has the latest content, as a page cache would show it; the platters are kept
// beside it in memory.
#include "test/support/lossy_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <utility>

#include "api/base/check.h"

namespace qrm::test {

/// SQLite's data of an open file: our head, then the real VFS's file.
struct LossyFile {
  sqlite3_file base;
  LossyDisk* disk;
  LossyDisk::Platter* platter;  // null for temporary files
  sqlite3_file* real;

  static LossyFile& Of(sqlite3_file* file) { return *reinterpret_cast<LossyFile*>(file); }

  static int Close(sqlite3_file* file) {
    sqlite3_file* real = Of(file).real;
    return real->pMethods == nullptr ? SQLITE_OK : real->pMethods->xClose(real);
  }
  static int Read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
    return Of(file).real->pMethods->xRead(Of(file).real, data, size, offset);
  }
  static int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    LossyFile& self = Of(file);
    if (const int code = self.disk->Spend(self.disk->write_code_); code != SQLITE_OK) {
      return code;
    }
    if (self.platter != nullptr) {
      self.platter->unsynced.push_back(
          {.offset = offset,
           .data = std::string(static_cast<const char*>(data), static_cast<std::size_t>(size))});
    }
    return self.real->pMethods->xWrite(self.real, data, size, offset);
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    LossyFile& self = Of(file);
    if (const int code = self.disk->Spend(self.disk->write_code_); code != SQLITE_OK) {
      return code;
    }
    if (self.platter != nullptr) {
      self.platter->unsynced.push_back({.offset = size, .data = {}, .truncates = true});
    }
    return self.real->pMethods->xTruncate(self.real, size);
  }
  static int Sync(sqlite3_file* file, int /*flags*/) {
    LossyFile& self = Of(file);
    if (const int code = self.disk->Spend(self.disk->sync_code_); code != SQLITE_OK) {
      return code;
    }
    ++self.disk->syncs_;
    if (self.platter != nullptr) {
      for (const LossyDisk::Write& write : self.platter->unsynced) {
        LossyDisk::Apply(self.platter->durable, write);
      }
      self.platter->unsynced.clear();
      self.platter->name_is_durable = true;  // SQLite syncs the directory of a new log as well
    }
    return SQLITE_OK;  // no need to trouble the real disk
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return Of(file).real->pMethods->xFileSize(Of(file).real, size);
  }
  static int Lock(sqlite3_file* file, int level) {
    return Of(file).real->pMethods->xLock(Of(file).real, level);
  }
  static int Unlock(sqlite3_file* file, int level) {
    return Of(file).real->pMethods->xUnlock(Of(file).real, level);
  }
  static int CheckReservedLock(sqlite3_file* file, int* out) {
    return Of(file).real->pMethods->xCheckReservedLock(Of(file).real, out);
  }
  static int FileControl(sqlite3_file* file, int op, void* argument) {
    return Of(file).real->pMethods->xFileControl(Of(file).real, op, argument);
  }
  static int SectorSize(sqlite3_file* file) {
    return Of(file).real->pMethods->xSectorSize(Of(file).real);
  }
  /// No guarantee, whatever the real disk says.
  static int DeviceCharacteristics(sqlite3_file* /*file*/) { return 0; }
  static int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
    return Of(file).real->pMethods->xShmMap(Of(file).real, page, size, extend, out);
  }
  static int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
    return Of(file).real->pMethods->xShmLock(Of(file).real, offset, count, flags);
  }
  static void ShmBarrier(sqlite3_file* file) {
    Of(file).real->pMethods->xShmBarrier(Of(file).real);
  }
  static int ShmUnmap(sqlite3_file* file, int remove) {
    return Of(file).real->pMethods->xShmUnmap(Of(file).real, remove);
  }
};

namespace {

constexpr std::size_t kSectorBytes = 512;

constexpr sqlite3_io_methods kMethods = {.iVersion = 2,
                                         .xClose = LossyFile::Close,
                                         .xRead = LossyFile::Read,
                                         .xWrite = LossyFile::Write,
                                         .xTruncate = LossyFile::Truncate,
                                         .xSync = LossyFile::Sync,
                                         .xFileSize = LossyFile::FileSize,
                                         .xLock = LossyFile::Lock,
                                         .xUnlock = LossyFile::Unlock,
                                         .xCheckReservedLock = LossyFile::CheckReservedLock,
                                         .xFileControl = LossyFile::FileControl,
                                         .xSectorSize = LossyFile::SectorSize,
                                         .xDeviceCharacteristics = LossyFile::DeviceCharacteristics,
                                         .xShmMap = LossyFile::ShmMap,
                                         .xShmLock = LossyFile::ShmLock,
                                         .xShmBarrier = LossyFile::ShmBarrier,
                                         .xShmUnmap = LossyFile::ShmUnmap};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

LossyDisk::LossyDisk() : real_(sqlite3_vfs_find(nullptr)) {
  static int count = 0;
  name_ = "lossy" + std::to_string(++count);
  vfs_ = std::make_unique<sqlite3_vfs>(*real_);
  vfs_->szOsFile = static_cast<int>(sizeof(LossyFile)) + real_->szOsFile;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = &LossyDisk::Open;
  vfs_->xDelete = &LossyDisk::Delete;
  QRM_CHECK(sqlite3_vfs_register(vfs_.get(), 0) == SQLITE_OK);
}

LossyDisk::~LossyDisk() {
  sqlite3_vfs_unregister(vfs_.get());
}

int LossyDisk::Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
  auto* self = static_cast<LossyDisk*>(vfs->pAppData);
  const bool existed = path != nullptr && std::filesystem::exists(path);
  auto* opened = new (file) LossyFile{
      .base = {.pMethods = &kMethods},
      .disk = self,
      .platter = nullptr,
      .real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(LossyFile))};
  opened->real->pMethods = nullptr;
  const int code = self->real_->xOpen(self->real_, path, opened->real, flags, out);
  if (code != SQLITE_OK) {
    file->pMethods = nullptr;
    return code;
  }
  if (path != nullptr) {
    const auto [entry, is_new] = self->platters_.try_emplace(path);
    if (is_new && existed) {
      entry->second.durable = ReadAll(path);
      entry->second.name_is_durable = true;
    }
    opened->platter = &entry->second;
  }
  return SQLITE_OK;
}

int LossyDisk::Delete(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  auto* self = static_cast<LossyDisk*>(vfs->pAppData);
  if (const int code = self->Spend(SQLITE_OK); code != SQLITE_OK) {
    return code;
  }
  self->platters_.erase(path);
  return self->real_->xDelete(self->real_, path, sync_directory);
}

int LossyDisk::Spend(int code) {
  if (operations_left_ == 0) {
    return SQLITE_IOERR;
  }
  operations_left_ -= operations_left_ > 0 ? 1 : 0;
  return code;
}

void LossyDisk::Apply(std::string& content, const Write& write) {
  const auto offset = static_cast<std::size_t>(write.offset);
  if (write.truncates) {
    content.resize(std::min(content.size(), offset));
    return;
  }
  content.resize(std::max(content.size(), offset + write.data.size()));
  content.replace(offset, write.data.size(), write.data);
}

std::vector<LossyDisk::Write> LossyDisk::Sectors(const Write& write) {
  if (write.truncates) {
    return {write};
  }
  std::vector<Write> sectors;
  for (std::size_t at = 0; at < write.data.size();) {
    const std::size_t position = static_cast<std::size_t>(write.offset) + at;
    const std::size_t size =
        std::min(write.data.size() - at, kSectorBytes - position % kSectorBytes);
    sectors.push_back(
        {.offset = static_cast<int64_t>(position), .data = write.data.substr(at, size)});
    at += size;
  }
  return sectors;
}

void LossyDisk::PowerUp(std::mt19937& random) {
  for (auto& [path, platter] : platters_) {
    if (!platter.name_is_durable && random() % 2 == 0) {
      std::filesystem::remove(path);
      continue;
    }
    std::vector<Write> sectors;
    for (const Write& write : platter.unsynced) {
      std::ranges::move(Sectors(write), std::back_inserter(sectors));
    }
    std::shuffle(sectors.begin(), sectors.end(), random);
    sectors.resize(sectors.empty() ? 0 : random() % (sectors.size() + 1));
    std::string content = platter.durable;
    for (const Write& sector : sectors) {
      Apply(content, sector);
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }
  platters_.clear();
  operations_left_ = -1;
}

}  // namespace qrm::test
