// qrmctl doctor and qrmctl bundle on a node in a directory.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "test/e2e/process.h"
#include "test/support/scripted_cri.h"
#include "test/tools/qrmctl/qrmctl_fixture.h"

namespace qrm::manager::cli::qrmctl_doctor_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DoctorTest : public QrmctlTest {
 protected:
  DoctorTest() {
    Write("proc/sys/kernel/osrelease", "6.1.0\n");
    Write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
    Write("etc/qrm/config.yaml",
          "cri-socket: /cri.sock\nnri-socket: /cri.sock\nkubelet-pods-socket: \"\"\n"
          "cluster: {password: hunter2}\n");
  }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + file).parent_path());
    std::ofstream(root_ + "/" + file) << text;
  }

  const std::string root_ = dir_ / "node";
};

TEST_F(DoctorTest, DoctorAsksTheRuntimeAndSucceedsWithoutQrmd) {
  const test::ScriptedCri cri(root_ + "/cri.sock");
  EXPECT_EQ(Run({"doctor", "--fsroot", root_}), kDone) << out() << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("CHECK              STATE"), HasSubstr("containerd v1.7.24"),
                           HasSubstr("qrmd               ok"), HasSubstr("not running")));
}

TEST_F(DoctorTest, DoctorFailsWithTheCureWhenTheRuntimeIsMissing) {
  EXPECT_EQ(Run({"doctor", "--fsroot", root_}), kFailed);
  EXPECT_THAT(out(), HasSubstr("nothing listens on /cri.sock"));
  EXPECT_EQ(Run({"doctor", "--fsroot", root_, "-o", "jsonpath={.checks[2].state}"}), kFailed);
  EXPECT_EQ(out(), "failing\n");
}

TEST_F(DoctorTest, DoctorFailsWhileQrmdIsNotReady) {
  const test::ScriptedCri cri(root_ + "/cri.sock");
  Serve();
  NodeStatus status;
  status.Fail(Subsystem::kDisk, "the disk is full");
  SetStatus(status);
  EXPECT_EQ(Run({"doctor", "--fsroot", root_}), kFailed);
  EXPECT_THAT(out(), AllOf(HasSubstr("not ready"), HasSubstr("qrmctl status: the disk is full")));
}

TEST_F(DoctorTest, BundleHasStatusPodsEventsChecksLogAndConfigurationWithoutSecrets) {
  Serve();
  SetUsualStatus();
  AdmitTwoPods();
  std::ofstream(dir_ / "qrmd.log") << "I \"started\" token=abc\n";
  const std::string file = dir_ / "bundle.tar";
  EXPECT_EQ(
      Run({"bundle", file, "--config", root_ + "/etc/qrm/config.yaml", "--log", dir_ / "qrmd.log"}),
      kDone)
      << err();
  EXPECT_THAT(out(), HasSubstr("wrote " + file));
  const auto shown = [&](const std::string& name) {
    return test::RunCommand({"/bin/tar", "-xOf", file, "qrm-bundle/" + name}).value_or("");
  };
  EXPECT_THAT(shown("versions.txt"), AllOf(HasSubstr("qrmd:    1.2.3\n"), HasSubstr("kernel:  "),
                                           HasSubstr("runtime: containerd v1.7.24\n"),
                                           HasSubstr("kubelet: "), HasSubstr("NRI:     v1alpha1")));
  EXPECT_THAT(shown("status.json"), HasSubstr("\"subsystems\""));
  EXPECT_THAT(shown("pods.json"), HasSubstr("\"shop\""));
  for (const char* name :
       {"status.txt", "doctor.txt", "plugins.json", "pools.json", "classes.json", "events.json",
        "refusals.json", "topology.json", "permissions.json", "policy.json"}) {
    EXPECT_THAT(shown(name), AllOf(Not(testing::IsEmpty()), Not(HasSubstr("--help")))) << name;
  }
  EXPECT_THAT(shown("config.yaml"),
              AllOf(HasSubstr("nri-socket: /cri.sock"), HasSubstr("{password: <removed>}")));
  EXPECT_EQ(shown("log.txt"), "I \"started\" token=<removed>\n");
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(DoctorTest, BundleKeepsAnExistingFileAndWorksWithoutQrmd) {
  const std::string file = dir_ / "bundle.tar";
  std::ofstream(file) << "mine";
  EXPECT_EQ(Run({"bundle", file}), kFailed);
  EXPECT_THAT(err(), HasSubstr("File exists; name another file"));
  EXPECT_EQ(Run({"bundle", "-"}), kDone);
  EXPECT_THAT(out(), AllOf(HasSubstr("qrm-bundle/status.txt"), HasSubstr("cannot reach qrmd")));
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_doctor_test
