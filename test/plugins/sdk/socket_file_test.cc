// Sockets appear whole, and replace dead sockets but not living ones.
#include "plugins/sdk/socket_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "api/base/check.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::socket_file_test {
namespace {

using testing::HasSubstr;

/// Listens at a path until it is destroyed; the file stays, as a killed process leaves it.
class Listener {
 public:
  explicit Listener(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    QRM_CHECK(fd_ >= 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  int fd_;
};

class SocketFileTest : public testing::Test {
 protected:
  test::TempDir dir_;
  const std::string path_ = dir_ / "cpu.sock";
};

TEST_F(SocketFileTest, PlacesASocketUnderItsName) {
  const StatusOr<std::string> temporary = TemporarySocketPath(path_);
  ASSERT_TRUE(temporary.ok());
  const Listener listener(*temporary);
  const std::optional<FileId> id = FindFile(*temporary);
  EXPECT_TRUE(PlaceSocket(*temporary, path_).ok());
  EXPECT_EQ(FindFile(path_), id);
  EXPECT_FALSE(FindFile(*temporary).has_value());
}

TEST_F(SocketFileTest, TemporaryNameIsHiddenFromWatchers) {
  EXPECT_EQ(std::filesystem::path(*TemporarySocketPath(path_)).filename().string().front(), '.');
}

TEST_F(SocketFileTest, ReplacesTheSocketOfADeadProcess) {
  {
    const Listener dead(path_);
  }
  const Listener listener(dir_ / ".new");
  EXPECT_TRUE(PlaceSocket(dir_ / ".new", path_).ok());
}

TEST_F(SocketFileTest, RejectsToReplaceALivingSocket) {
  const Listener living(path_);
  const std::optional<FileId> before = FindFile(path_);
  const Listener listener(dir_ / ".new");
  const Status placed = PlaceSocket(dir_ / ".new", path_);
  EXPECT_EQ(placed.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(placed), HasSubstr("another process listens there; stop it"));
  EXPECT_EQ(FindFile(path_), before);
}

TEST_F(SocketFileTest, RejectsToReplaceAFileOfAnotherKind) {
  std::ofstream(path_) << "precious";
  const Listener listener(dir_ / ".new");
  EXPECT_EQ(PlaceSocket(dir_ / ".new", path_).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(SocketFileTest, RejectsAPathThatIsTooLongForASocket) {
  const std::string deep = dir_ / std::string(100, 'x') + ".sock";
  EXPECT_EQ(TemporarySocketPath(deep).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SocketFileTest, MissingDirectoryIsNotFound) {
  EXPECT_EQ(TemporarySocketPath(dir_ / "none/cpu.sock").status().code(), StatusCode::kNotFound);
}

TEST_F(SocketFileTest, FileIdSurvivesAChangeOfMode) {
  const Listener listener(path_);
  const std::optional<FileId> before = FindFile(path_);
  ::chmod(path_.c_str(), 0600);
  EXPECT_EQ(FindFile(path_), before);
}

}  // namespace
}  // namespace qrm::sdk::socket_file_test
