// A plugin's claims at registration.
#include "manager/registry/registration_check.h"

#include <filesystem>
#include <string>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/check.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::registration_check_test {
namespace {

using testing::HasSubstr;

/// Leaves a socket's file at `path`, as a killed plugin does.
void MakeSocketFile(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  QRM_CHECK(fd >= 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  QRM_CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  ::close(fd);
}

TEST(RegistrationCheckTest, OneVersionOfSeveralIsEnough) {
  EXPECT_TRUE(CheckVersions({"v1beta1", "v1alpha1"}).ok());
}

TEST(RegistrationCheckTest, RejectedVersionsAreAllNamed) {
  const Status refused = CheckVersions({"v1beta1", "v2"});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("\"v1beta1\", \"v2\""));
  EXPECT_THAT(MessageOf(refused), HasSubstr("use \"v1alpha1\""));
}

TEST(RegistrationCheckTest, EndpointIsTheSocketOfThatNameInTheDirectory) {
  const test::TempDir dir;
  MakeSocketFile(dir / "cpu.sock");
  const StatusOr<std::string> socket = SocketNamed("cpu.sock", dir.path());
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(*socket, dir / "cpu.sock");
}

TEST(RegistrationCheckTest, ManagersOwnSocketIsNotAPlugin) {
  const test::TempDir dir;
  MakeSocketFile(dir / kRegistrationSocket);
  const Status refused = SocketNamed(kRegistrationSocket, dir.path()).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("manager's own socket"));
}

TEST(RegistrationCheckTest, EndpointWithNulIsRejected) {
  const test::TempDir dir;
  MakeSocketFile(dir / "cpu.sock");
  EXPECT_EQ(SocketNamed(std::string("cpu.sock\0x", 10), dir.path()).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(RegistrationCheckTest, ALinkToASocketIsNone) {
  const test::TempDir dir;
  MakeSocketFile(dir / "cpu.sock");
  std::filesystem::create_symlink(dir / "cpu.sock", dir / "link.sock");
  const Status named = SocketNamed("link.sock", dir.path()).status();
  EXPECT_EQ(named.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(named), HasSubstr("links are not followed"));
  EXPECT_EQ(SocketAnnounced(dir / "link.sock", dir / "cpu.sock").status().code(),
            StatusCode::kInvalidArgument);
}

TEST(RegistrationCheckTest, AWorldWritableDirectoryIsRejected) {
  const test::TempDir dir;
  EXPECT_TRUE(CheckPluginDirectory(dir.path()).ok());
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  EXPECT_THAT(MessageOf(CheckPluginDirectory(dir.path())),
              HasSubstr("every user may write there (mode 777) and could impersonate "
                        "plugins; run chmod go-w"));
  MakeSocketFile(dir / "service.sock");
  EXPECT_EQ(SocketAnnounced(dir / "service.sock", dir / "cpu.sock").status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(RegistrationCheckTest, AGroupWritableDirectoryIsRejected) {
  const test::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 02770), 0);
  const Status refused = CheckPluginDirectory(dir.path());
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused),
              HasSubstr("group " + std::to_string(::getegid()) + " may write there (mode 2770)"));
}

// It was put there before the directory's permissions were restricted.
TEST(RegistrationCheckTest, ASocketOfAnotherUserThanRootIsRejected) {
  const test::TempDir dir;
  MakeSocketFile(dir / "cpu.sock");
  EXPECT_TRUE(CheckPluginSocket(dir / "cpu.sock").ok());
  constexpr uid_t kOther = 12345;
  if (::chown((dir / "cpu.sock").c_str(), kOther, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give a socket away";
  }
  const std::string why = dir / "cpu.sock" + ": it belongs to user 12345, who could impersonate";
  EXPECT_THAT(MessageOf(SocketNamed("cpu.sock", dir.path()).status()), HasSubstr(why));
  EXPECT_THAT(MessageOf(SocketAnnounced(dir / "cpu.sock", dir / "other.sock").status()),
              HasSubstr(why));
}

TEST(RegistrationCheckTest, ADirectoryOfAnotherUserThanRootIsRejected) {
  const test::TempDir dir;
  constexpr uid_t kOther = 12345;
  if (::chown(dir.path().c_str(), kOther, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give a directory away";
  }
  EXPECT_THAT(MessageOf(CheckPluginDirectory(dir.path())),
              HasSubstr("belongs to user 12345, who could impersonate plugins; run chown root"));
}

TEST(RegistrationCheckTest, AnnouncedEndpointIsTheRegistrationSocketUnlessItIsNamed) {
  const test::TempDir dir;
  MakeSocketFile(dir / "service.sock");
  EXPECT_EQ(*SocketAnnounced("", dir / "cpu.sock"), dir / "cpu.sock");
  EXPECT_EQ(*SocketAnnounced(dir / "service.sock", dir / "cpu.sock"), dir / "service.sock");
}

TEST(RegistrationCheckTest, AnnouncedEndpointMustBeTheAbsolutePathOfASocket) {
  const test::TempDir dir;
  for (const std::string& endpoint : {std::string("service.sock"), dir / "none.sock", dir.path()}) {
    const Status refused = SocketAnnounced(endpoint, dir / "cpu.sock").status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << endpoint;
    EXPECT_THAT(MessageOf(refused), HasSubstr("\"" + endpoint + "\""));
  }
}

}  // namespace
}  // namespace qrm::manager::registration_check_test
