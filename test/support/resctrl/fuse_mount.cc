// Serves a FileTree to the kernel through libfuse's low-level interface.
#include "test/support/resctrl/fuse_mount.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <fuse_lowlevel.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "api/base/errorf.h"

namespace qrm::test {
namespace {

constexpr double kLong = 3600;  // seconds

/// The path of each of the kernel's inode numbers. Only the session's thread uses it.
class Paths {
 public:
  fuse_ino_t NumberOf(const std::string& path) {
    const auto [found, is_new] = numbers_.emplace(path, next_);
    if (is_new) {
      paths_.emplace(next_++, path);
    }
    return found->second;
  }
  /// Nothing for what was removed.
  const std::string* PathOf(fuse_ino_t number) const {
    const auto found = paths_.find(number);
    return found == paths_.end() ? nullptr : &found->second;
  }
  /// `path` and all below it are gone.
  void Forget(const std::string& path) {
    for (auto entry = numbers_.lower_bound(path); entry != numbers_.end();) {
      if (!entry->first.starts_with(path)) {
        break;
      }
      if (entry->first == path || entry->first[path.size()] == '/') {
        paths_.erase(entry->second);
        entry = numbers_.erase(entry);
      } else {
        ++entry;
      }
    }
  }

 private:
  fuse_ino_t next_ = FUSE_ROOT_ID + 1;
  std::map<std::string, fuse_ino_t> numbers_ = {{"", FUSE_ROOT_ID}};
  std::map<fuse_ino_t, std::string> paths_ = {{FUSE_ROOT_ID, ""}};
};

struct Session {
  FileTree* tree = nullptr;
  Names names = Names::kAskedEachTime;
  Paths paths;
};

Session& SessionOf(fuse_req_t request) {
  return *static_cast<Session*>(fuse_req_userdata(request));
}

struct stat AttributesOf(FileTree::Kind kind, fuse_ino_t number) {
  struct stat attributes{};
  attributes.st_ino = number;
  attributes.st_nlink = 1;
  attributes.st_mode = kind == FileTree::Kind::kDirectory ? S_IFDIR | 0755U : S_IFREG | 0644U;
  return attributes;
}

/// The path of `number`; answers with an error where it is gone.
const std::string* PathOrFail(fuse_req_t request, fuse_ino_t number) {
  const std::string* const path = SessionOf(request).paths.PathOf(number);
  if (path == nullptr) {
    fuse_reply_err(request, ENODEV);
  }
  return path;
}

std::string Below(const std::string& directory, const char* name) {
  return directory.empty() ? name : directory + "/" + name;
}

void ReplyEntry(fuse_req_t request, const std::string& path) {
  Session& session = SessionOf(request);
  const FileTree::Kind kind = session.tree->Find(path);
  if (kind == FileTree::Kind::kNone) {
    session.paths.Forget(path);
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = session.paths.NumberOf(path);
  entry.attr = AttributesOf(kind, entry.ino);
  entry.attr_timeout = kLong;
  entry.entry_timeout = session.names == Names::kRemembered ? kLong : 0;
  fuse_reply_entry(request, &entry);
}

void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (const std::string* const path = PathOrFail(request, parent); path != nullptr) {
    ReplyEntry(request, Below(*path, name));
  }
}

void GetAttributes(fuse_req_t request, fuse_ino_t number, fuse_file_info* /*file*/) {
  const std::string* const path = PathOrFail(request, number);
  if (path == nullptr) {
    return;
  }
  const FileTree::Kind kind = SessionOf(request).tree->Find(*path);
  if (kind == FileTree::Kind::kNone) {
    fuse_reply_err(request, ENODEV);
    return;
  }
  const struct stat attributes = AttributesOf(kind, number);
  fuse_reply_attr(request, &attributes, 0);
}

void SetAttributes(fuse_req_t request, fuse_ino_t number, struct stat* /*wanted*/, int /*which*/,
                   fuse_file_info* file) {
  GetAttributes(request, number, file);  // truncating changes nothing
}

void Open(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* file) {
  file->direct_io = 1;  // nothing is cached, and there is no size to end at
  fuse_reply_open(request, file);
}

void ReplyPart(fuse_req_t request, const std::string& text, size_t size, off_t offset) {
  const auto from = std::min(static_cast<size_t>(offset), text.size());
  fuse_reply_buf(request, text.data() + from, std::min(size, text.size() - from));
}

void Read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
          fuse_file_info* /*file*/) {
  const std::string* const path = PathOrFail(request, number);
  if (path == nullptr) {
    return;
  }
  const FileResult result = SessionOf(request).tree->Read(*path);
  if (result.error != 0) {
    fuse_reply_err(request, result.error);
    return;
  }
  ReplyPart(request, result.text, size, offset);
}

// NOLINTNEXTLINE(readability-function-size): libfuse's signature.
void Write(fuse_req_t request, fuse_ino_t number, const char* bytes, size_t size, off_t /*offset*/,
           fuse_file_info* /*file*/) {
  const std::string* const path = PathOrFail(request, number);
  if (path == nullptr) {
    return;
  }
  const int error = SessionOf(request).tree->Write(*path, {bytes, size});
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  fuse_reply_write(request, size);
}

void MakeDirectory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t /*mode*/) {
  const std::string* const path = PathOrFail(request, parent);
  if (path == nullptr) {
    return;
  }
  const std::string made = Below(*path, name);
  const int error = SessionOf(request).tree->MakeDirectory(made);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  ReplyEntry(request, made);
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const std::string* const path = PathOrFail(request, parent);
  if (path == nullptr) {
    return;
  }
  const std::string removed = Below(*path, name);
  const int error = SessionOf(request).tree->RemoveDirectory(removed);
  if (error == 0) {
    SessionOf(request).paths.Forget(removed);
  }
  fuse_reply_err(request, error);
}

void RefuseToRemoveFile(fuse_req_t request, fuse_ino_t /*parent*/, const char* /*name*/) {
  fuse_reply_err(request, EPERM);
}

void RefuseToMakeFile(fuse_req_t request, fuse_ino_t /*parent*/, const char* /*name*/,
                      mode_t /*mode*/, fuse_file_info* /*file*/) {
  fuse_reply_err(request, EPERM);
}

void ReadDirectory(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                   fuse_file_info* /*file*/) {
  const std::string* const path = PathOrFail(request, number);
  if (path == nullptr) {
    return;
  }
  Session& session = SessionOf(request);
  std::string entries;
  for (const std::string& name : session.tree->List(*path)) {
    const std::string below = Below(*path, name.c_str());
    const struct stat attributes =
        AttributesOf(session.tree->Find(below), session.paths.NumberOf(below));
    const size_t used = entries.size();
    const size_t length = fuse_add_direntry(request, nullptr, 0, name.c_str(), nullptr, 0);
    entries.resize(used + length);
    fuse_add_direntry(request, entries.data() + used, length, name.c_str(), &attributes,
                      static_cast<off_t>(used + length));
  }
  ReplyPart(request, entries, size, offset);
}

constexpr fuse_lowlevel_ops MakeOperations() {
  fuse_lowlevel_ops operations{};
  operations.lookup = Lookup;
  operations.getattr = GetAttributes;
  operations.setattr = SetAttributes;
  operations.open = Open;
  operations.read = Read;
  operations.write = Write;
  operations.mkdir = MakeDirectory;
  operations.rmdir = RemoveDirectory;
  operations.unlink = RefuseToRemoveFile;
  operations.create = RefuseToMakeFile;
  operations.readdir = ReadDirectory;
  return operations;
}
constexpr fuse_lowlevel_ops kOperations = MakeOperations();

}  // namespace

struct FuseMount::Impl {
  Session session;
  fuse_session* fuse = nullptr;
  std::string point;
  std::thread thread;
};

FuseMount::FuseMount(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusOr<std::unique_ptr<FuseMount>> FuseMount::Create(FileTree& tree, const std::string& point,
                                                       Names names) {
  auto impl = std::make_unique<Impl>();
  impl->session.tree = &tree;
  impl->session.names = names;
  impl->point = point;
  std::string program = "qrm-test";
  std::array<char*, 1> arguments = {program.data()};
  fuse_args args = FUSE_ARGS_INIT(1, arguments.data());
  impl->fuse = fuse_session_new(&args, &kOperations, sizeof(kOperations), &impl->session);
  fuse_opt_free_args(&args);
  if (impl->fuse == nullptr || fuse_session_mount(impl->fuse, point.c_str()) != 0) {
    if (impl->fuse != nullptr) {
      fuse_session_destroy(impl->fuse);
    }
    return Errorf(
        StatusCode::kFailedPrecondition,
        "cannot mount a file system of the test on {}: {}; run as root where /dev/fuse is", point,
        std::strerror(errno));
  }
  impl->thread = std::thread([fuse = impl->fuse] { fuse_session_loop(fuse); });
  return std::unique_ptr<FuseMount>(new FuseMount(std::move(impl)));
}

FuseMount::~FuseMount() {
  // Detached even while a process has a file of it open; the end of the connection ends the loop.
  ::umount2(impl_->point.c_str(), MNT_FORCE);
  ::umount2(impl_->point.c_str(), MNT_DETACH);
  fuse_session_exit(impl_->fuse);
  impl_->thread.join();
  fuse_session_unmount(impl_->fuse);
  fuse_session_destroy(impl_->fuse);
}

}  // namespace qrm::test
