// A compute driver that answers in every wrong way, through a real qrmd on a simulated runtime.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "api/proto/pluginregistration/v1/api.pb.h"
#include "test/e2e/driver_node.h"
#include "test/support/is_ok.h"

namespace qrm::test::wrong_driver_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Whether an answer waits until the test is over.
enum class Hangs { kNo, kYes };
std::binary_semaphore may_answer(0);

struct WrongAnswer {
  std::string name;
  DriverNode::Admit admit;
  std::string want;
  int64_t cpus = 2;
  Hangs hangs = Hangs::kNo;
};

DriverNode::Admit Gives(const std::string& cpus) {
  return [cpus](const AdmitRequest&, AdmitResponse& response) {
    Give(response, cpus);
    return OkStatus();
  };
}

/// Two CPUs that it may give, and an error in the rest.
DriverNode::Admit GivesAnd(std::function<void(AdmitResponse&)> spoil) {
  return [spoil = std::move(spoil)](const AdmitRequest& request, AdmitResponse& response) {
    const Status given = GiveLast(request, response);
    spoil(response);
    return given;
  };
}

DriverNode::Admit GivesParts(const std::vector<std::pair<std::string, std::string>>& cpus_and_idle,
                             const std::string& whole) {
  return [=](const AdmitRequest&, AdmitResponse& response) {
    Give(response, whole);
    for (const auto& [cpus, idle] : cpus_and_idle) {
      auto& part = *response.mutable_rset()->add_parts();
      part.set_cpuset(cpus);
      part.set_exclusive(true);
      part.set_idle_cpus(idle);
    }
    return OkStatus();
  };
}

DriverNode::Admit Fails(const Status& status) {
  return [status](const AdmitRequest&, AdmitResponse&) { return status; };
}

std::string EveryOther(int count) {
  std::string list = "0";
  for (int i = 1; i < count; ++i) {
    list += fmt::format(",{}", 2 * i);
  }
  return list;
}

/// The node of all cases: CPU 3 is another pod's, and CPUs 1 and 2 of the hinted node are offered.
class WrongAnswerTest : public testing::TestWithParam<WrongAnswer> {
 protected:
  static void SetUpTestSuite() {
    node = new DriverNode;
    node->StartDriver([](const AdmitRequest& request, AdmitResponse& response) {
      return Latest()(request, response);
    });
    Set(GiveLast);
    ASSERT_TRUE(IsOk(node->runtime.RunPod(DriverPod("holder", 1))));
  }
  static void TearDownTestSuite() { delete node; }

  static void Set(DriverNode::Admit next) {
    const MutexLock lock(mutex);
    admit = std::move(next);
  }
  /// A copy, which may answer after the next one was set.
  static DriverNode::Admit Latest() {
    const MutexLock lock(mutex);
    return admit;
  }

  static inline DriverNode* node = nullptr;
  static inline Mutex mutex;
  static inline DriverNode::Admit admit QRM_GUARDED_BY(mutex);
};

TEST_P(WrongAnswerTest, IsRejectedWithASentenceAndLeavesTheStateAsItWas) {
  const std::string before = node->State();
  Set(GetParam().admit);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(node->Refusal(DriverPod("web", GetParam().cpus)),
              AllOf(HasSubstr("cannot admit container container0 of pod default/web"),
                    HasSubstr(GetParam().want)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
  EXPECT_EQ(node->State(), before);
  EXPECT_THAT(node->driver->calls().back(), StartsWith("remove "));
  if (GetParam().hangs == Hangs::kYes) {
    may_answer.release();
  }
}

const WrongAnswer kWrongAnswers[] = {
    {"ReservedCpu", Gives("0-1"), "of which 0 were not offered"},
    {"CpuOfAnotherPod", Gives("2-3"), "of which 3 were not offered"},
    {"CpuThatTheMachineLacks", Gives("1,99"), "of which 99 were not offered"},
    {"NoCpu", Gives(""), "it gives no CPU"},
    {"NoSet", [](const AdmitRequest&, AdmitResponse&) { return OkStatus(); }, "it gives no CPU"},
    {"Letters", Gives("a-b"), "cannot"},
    {"BackwardRange", Gives("5-3"), "cannot"},
    {"NegativeCpu", Gives("-1"), "cannot"},
    {"EmptyItem", Gives("4,,5"), "cannot"},
    {"HugeCpu", Gives("4294967296"), "cannot"},
    {"CpuBeyondAll", Gives("70000"), "cannot"},
    {"AMillionCpus", Gives(EveryOther(1'000'000)), "cannot"},
    {"CpuInTwoParts", GivesParts({{"1", ""}, {"1-2", ""}}, "1-2"), "CPUs 1 twice"},
    {"CpuThatIsIdleToo", GivesParts({{"1", "1"}}, "1"), "CPUs 1 twice"},
    {"IdleCpuOfAnotherPod", GivesParts({{"2", "3"}}, "2"), "of which 3 were not offered"},
    {"IdleCpusThatNobodyPaysFor", GivesParts({{"1", "2"}}, "1"), "it gave 2 CPUs", 1},
    {"PartsThatAreNotTheSet", GivesParts({{"1", ""}}, "1-2"), "the union of its parts is 1"},
    {"SharedCpusAlone", GivesAnd([](AdmitResponse& r) { r.mutable_rset()->set_exclusive(false); }),
     "of the default pool and no others, and the pool may lose them"},
    {"OneSharedPart", GivesAnd([](AdmitResponse& r) { r.mutable_rset()->add_parts(); }),
     "the union of its parts is"},
    {"MoreThanRequested", Gives("1-2"), "it gave 2 CPUs (1-2), but the container requests 1", 1},
    {"OtherNumaNodes", Gives("2,4"), "of which 4 were not offered"},

    {"Refusal", GivesAnd([](AdmitResponse& r) { r.set_err("the moon is full"); }),
     "the moon is full"},
    {"RefusalWithControlCharacters", GivesAnd([](AdmitResponse& r) { r.set_err("a\nb\x1b[2J"); }),
     "a\\nb\\x1b[2J"},
    {"ErrorStatus", Fails({StatusCode::kResourceExhausted, "no core left"}), "no core left"},
    {"ErrorWithoutWords", Fails({StatusCode::kInternal, ""}), "and no message"},
    {"ErrorOfAnAwayDriver", Fails({StatusCode::kUnavailable, "come back"}), "come back"},
    {"MemoryNodeThatTheMachineLacks", GivesAnd([](AdmitResponse& r) { r.set_mems("9"); }),
     "NUMA node 9, which this machine does not have"},
    {"UnreadableMemoryNodes", GivesAnd([](AdmitResponse& r) { r.set_mems("x"); }), "cannot"},
    {"VariableWithoutName", GivesAnd([](AdmitResponse& r) { (*r.mutable_envs())["A=B"] = "c"; }),
     "'A=B'"},
    {"AMegabyteOfVariables",
     GivesAnd([](AdmitResponse& r) { (*r.mutable_envs())["A"] = std::string(1 << 20, 'a'); }),
     "give at most 65536"},
    {"SeventeenMegabytes",
     GivesAnd([](AdmitResponse& r) { (*r.mutable_envs())["A"] = std::string(17 << 20, 'a'); }),
     "cannot get CPUs of plugin"},  // too large, or too late on a busy machine
    {"NoAnswer",
     [](const AdmitRequest&, AdmitResponse&) {
       may_answer.acquire();
       return OkStatus();
     },
     "no answer ", 2, Hangs::kYes},
};
INSTANTIATE_TEST_SUITE_P(Each, WrongAnswerTest, testing::ValuesIn(kWrongAnswers),
                         [](const auto& param_info) { return param_info.param.name; });

/// A driver that answers the resize of pod `web` in a wrong way. CPU 3 is exclusive to the pod, and
/// CPU 2 to another one.
class WrongResizeTest : public testing::TestWithParam<WrongAnswer>, protected DriverNode {
 protected:
  void SetUp() override {
    resizes = true;
    StartDriver([this](const AdmitRequest& request, AdmitResponse& response) {
      if (request.pod() != "web" || request.current_cpus().empty() || !is_wrong_) {
        return GiveLast(request, response);
      }
      if (GetParam().hangs == Hangs::kYes) {
        corrected_.wait();
      }
      return GetParam().admit(request, response);
    });
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 1))));
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("neighbour", 1))));
    ASSERT_EQ(Cpus("web") + "," + Cpus("neighbour"), "3,2");
  }
  void TearDown() override {
    Correct();
    driver.reset();  // it uses the members below
  }
  void Correct() {
    if (is_wrong_.exchange(false)) {
      correct_.set_value();
    }
  }

 private:
  std::atomic<bool> is_wrong_ = true;
  std::promise<void> correct_;
  const std::shared_future<void> corrected_ = correct_.get_future().share();
};

TEST_P(WrongResizeTest, LeavesTheContainerItsCpusAndHurtsNoOther) {
  ASSERT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", GetParam().cpus).container)));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("other", 2))));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_TRUE(IsOk(runtime.Resize("other", DriverPod("other", 3).container)));
  const auto status = [&] { return node().Qrmctl({"status"}).value_or(""); };
  EXPECT_TRUE(Await([&] { return status().find(GetParam().want) != std::string::npos; }))
      << status();
  EXPECT_TRUE(Await([&] { return Cpus("other") == "5-7"; })) << Cpus("other");
  EXPECT_EQ(Cpus("web") + "," + Cpus("neighbour"), "3,2");
  Correct();
  EXPECT_TRUE(Await([&] { return Cpus("web") == "1,3"; })) << Cpus("web") << status();
}

const WrongAnswer kWrongResizes[] = {
    // gRPC answers so for a handler that throws.
    {"Exception", Fails({StatusCode::kUnknown, "Unexpected error in RPC handling"}),
     "Unexpected error in RPC handling"},
    {"CpuOfAnotherContainer", Gives("2-3"), "of which 2 were not offered"},
    {"NoAnswer", GiveLast, "no answer within ", 2, Hangs::kYes},
};
INSTANTIATE_TEST_SUITE_P(Each, WrongResizeTest, testing::ValuesIn(kWrongResizes),
                         [](const auto& param_info) { return param_info.param.name; });

/// Answers each admission with two messages, which the services of gRPC's own code cannot.
class DriverThatAnswersTwice final : public grpc::CallbackGenericService {
 public:
  explicit DriverThatAnswersTwice(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~DriverThatAnswersTwice() override { server_->Shutdown(std::chrono::system_clock::now()); }
  DriverThatAnswersTwice(const DriverThatAnswersTwice&) = delete;
  DriverThatAnswersTwice& operator=(const DriverThatAnswersTwice&) = delete;

 private:
  static grpc::ByteBuffer BufferOf(const google::protobuf::Message& message) {
    const grpc::Slice bytes(message.SerializeAsString());
    return {&bytes, 1};
  }

  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Call(const std::string& method) {
      if (method == "/pluginregistration.Registration/GetInfo") {
        pluginregistration::PluginInfo info;
        info.set_type("CCIDriver");
        info.set_name("scripted");
        info.add_supported_versions("v1alpha1");
        answers_ = {BufferOf(info)};
      } else if (method == "/cci.v1alpha1.CCIDriver/cciAdmit") {
        for (const char* const cpus : {"3", "1"}) {
          AdmitResponse response;
          Give(response, cpus);
          answers_.push_back(BufferOf(response));
        }
      } else {
        answers_ = {BufferOf(pluginregistration::RegistrationStatusResponse())};
      }
      StartRead(&request_);
    }
    void OnReadDone(bool /*ok*/) override { StartWrite(answers_.data()); }
    void OnWriteDone(bool ok) override {
      ++written_;
      if (ok && written_ < answers_.size()) {
        StartWrite(&answers_[written_]);
      } else {
        Finish(grpc::Status::OK);
      }
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_;
    std::vector<grpc::ByteBuffer> answers_;
    std::size_t written_ = 0;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(context->method());
  }

  std::unique_ptr<grpc::Server> server_;
};

TEST(TwiceAnsweringDriverTest, HurtsNoContainerButItsOwn) {
  DriverNode node;
  const DriverThatAnswersTwice twice(node.dir() / "node/plugins/twice.sock");
  ASSERT_TRUE(Await([&] { return node.IsLive(kScriptedDriver); })) << node.Plugins();
  EXPECT_THAT(node.Refusal(DriverPod("web", 1)), HasSubstr("no answer within "));
  ASSERT_TRUE(IsOk(node.runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(node.Cpus("plain"), "1-7");
}

/// A driver that waits in a call until the test lets it go on.
class BlockingDriverTest : public testing::Test, protected DriverNode {
 protected:
  void TearDown() override { Unblock(); }
  void Block(const std::string& call) {
    on_call = [this, call](std::string_view name) {
      if (name == call && !has_blocked_.exchange(true)) {
        asked_.release();
        go_on_.acquire();
      }
    };
    StartDriver(GiveLast);
  }
  void AwaitCall() { asked_.acquire(); }
  void Unblock() {
    if (!goes_on_.exchange(true)) {
      go_on_.release();
    }
  }

 private:
  std::atomic<bool> has_blocked_ = false;  // only its first call
  std::atomic<bool> goes_on_ = false;
  std::binary_semaphore asked_{0};
  std::binary_semaphore go_on_{0};
};

TEST_F(BlockingDriverTest, OtherContainersAreAdmittedWhileADriverBlocksAnAdmission) {
  Block("admit");
  std::string refusal;
  std::thread blocked([&] { refusal = Refusal(DriverPod("blocked", 2)); });
  AwaitCall();
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("other", 1)))) << "the driver answers again";
  blocked.join();
  EXPECT_THAT(refusal, HasSubstr("no answer within "));
}

TEST_F(BlockingDriverTest, ALateAnswerGivesNothingAndItsCpusAreOfferedToOthers) {
  Block("admit");
  EXPECT_THAT(Refusal(DriverPod("late", 2)), HasSubstr("no answer within "));
  Unblock();  // it gives CPUs 2-3 now
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  EXPECT_EQ(Cpus("web"), "2-3");
  EXPECT_THAT(State(), Not(HasSubstr("uid-late")));
}

TEST_F(BlockingDriverTest, OtherContainersStartWhileADriverBlocksAStart) {
  Block("add");
  std::string refusal;
  std::thread blocked([&] { refusal = Refusal(DriverPod("blocked", 2)); });
  AwaitCall();
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("other", 1))));
  blocked.join();
  EXPECT_THAT(refusal, AllOf(HasSubstr("cannot start container container0 of pod default/blocked"),
                             HasSubstr("no answer within")));
}

TEST_F(BlockingDriverTest, OtherContainersAreAdmittedWhileADriverBlocksARemoval) {
  Block("remove");
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  AwaitCall();
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1,4-7") << "the CPUs of the removal stay withheld";
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("other", 1))));
  Unblock();
  EXPECT_TRUE(Await([&] { return State().find("uid-web") == std::string::npos; }));
}

}  // namespace
}  // namespace qrm::test::wrong_driver_test
