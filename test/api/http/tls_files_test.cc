#include "api/http/tls_files.h"

#include <fstream>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/support/tls_identity.h"

namespace qrm::tls_files_test {
namespace {

TEST(TlsFilesTest, ReportsWhichNameItsCertificateIsFor) {
  const test::TempDir dir;
  const test::TlsIdentity identity = test::MakeTlsIdentity();
  std::ofstream(dir / "tls.crt") << identity.certificate;
  std::ofstream(dir / "tls.key") << identity.key;
  TlsFiles files(dir / "tls.crt", dir / "tls.key");
  EXPECT_TRUE(files.IsFor("kubelet"));
  EXPECT_FALSE(files.IsFor("evil.test"));
  EXPECT_FALSE(files.IsFor(""));
  EXPECT_FALSE(TlsFiles(dir / "none", dir / "none").IsFor("kubelet"));
}

}  // namespace
}  // namespace qrm::tls_files_test
