// Messages of every size and in pieces, and invalid messages.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/runtime/nri/frames.h"
#include "test/manager/runtime/nri/nri_fixture.h"

namespace qrm::manager::nri_framing_test {
namespace {

using test::NriContainer;
using test::NriPod;
using test::ScriptedRuntimeOptions;
using ::testing::SizeIs;

namespace wire = ::nri::pkg::api::v1alpha1;

class NriFramingTest : public test::NriFixture {};

TEST_F(NriFramingTest, TakesMessagesThatExceedTheSendingLimit) {
  ScriptedRuntimeOptions script;
  wire::Container container = NriContainer("large");
  container.add_env("X=" + std::string(8 << 20, 'x'));
  script.containers.push_back(container);
  Attach(script);
  ASSERT_THAT(events_.containers(), SizeIs(1));
  EXPECT_EQ(events_.containers()[0].env[0].size(), (8U << 20) + 2);
}

TEST_F(NriFramingTest, TakesMessagesCutAnywhere) {
  ScriptedRuntimeOptions script{.framing = ScriptedRuntimeOptions::Framing::kFragments};
  script.pods.push_back(NriPod("1"));
  Attach(script);
  EXPECT_THAT(events_.pods(), SizeIs(1));
  EXPECT_TRUE(Create().ok());
}

TEST_F(NriFramingTest, SendsEverySizeAsTheRuntimeCanReadIt) {
  std::size_t size = 0;
  events_.on_create = [&](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(ContainerAdjustment{.envs = {{"X", std::string(size, 'x')}}});
  };
  Attach();
  for (const std::size_t next : {10UL, 4000UL, 4060UL, 4096UL, 5000UL, 20000UL, 3000000UL}) {
    size = next;
    const auto response = Create();
    ASSERT_TRUE(response.ok()) << next << ": " << response.status() << runtime_->violation();
    EXPECT_EQ(response->adjust().env(0).value().size(), next);
  }
  EXPECT_EQ(runtime_->violation(), "");
}

TEST_F(NriFramingTest, AnswersWithErrorInsteadOfMessageThatCannotBeRead) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(ContainerAdjustment{.envs = {{"X", std::string(5 << 20, 'x')}}});
  };
  Attach();
  const auto response = Create();
  EXPECT_EQ(response.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(runtime_->Call("Shutdown", "").ok());
}

TEST_F(NriFramingTest, SurvivesGarbage) {
  Attach();
  runtime_->SendRaw(std::string(64, '\xff'));
  EXPECT_TRUE(runtime_->WaitForSynchronizations(2));
}

TEST_F(NriFramingTest, TakesACreationOfEightMebibytes) {
  Attach();
  wire::Container container = NriContainer("large");
  container.add_env("X=" + std::string(8 << 20, 'x'));
  EXPECT_TRUE(runtime_->CreateContainer(NriPod("1"), container).ok());
}

TEST_F(NriFramingTest, RejectsARequestBeyondTheReceivingLimitAndTakesTheNext) {
  Attach();
  ttrpc::Request request;
  request.set_payload(std::string(kMaxReceiveBytes, 'x'));
  EXPECT_EQ(runtime_->CallRaw(request, std::nullopt, std::chrono::seconds(10)).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(Create().ok());
}

TEST_F(NriFramingTest, RejectsStreamsThatAreUsedOrEven) {
  Attach();
  ttrpc::Request request;
  request.set_service("nri.pkg.api.v1alpha1.Plugin");
  request.set_method("Shutdown");
  EXPECT_TRUE(runtime_->CallRaw(request, 1001).ok());
  for (const uint32_t stream : {1001U, 999U, 1002U}) {
    EXPECT_EQ(runtime_->CallRaw(request, stream).status().code(), StatusCode::kInvalidArgument)
        << stream;
  }
  EXPECT_TRUE(runtime_->CallRaw(request, 1003).ok());
}

TEST_F(NriFramingTest, DropsFramesOfConnectionsThatItDoesNotKnow) {
  Attach();
  runtime_->SendRaw(EncodeMuxHeader(7, 5) + "hello");
  EXPECT_TRUE(Create().ok());
  EXPECT_EQ(runtime_->connections(), 1);
}

TEST_F(NriFramingTest, DropsUnexpectedAnswers) {
  Attach();
  const std::string late = EncodeTtrpcHeader(77, TtrpcType::kResponse, 2) + "??";
  runtime_->SendRaw(EncodeMuxHeader(kRuntimeConnection, late.size()) + late);
  runtime_->SendRaw(EncodeMuxHeader(kPluginConnection, late.size()) + late);
  EXPECT_TRUE(Create().ok());
}

TEST_F(NriFramingTest, DropsStreamingDataAndUnknownMessageTypes) {
  Attach();
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): as a later runtime would.
  const auto unknown = static_cast<TtrpcType>(9);
  for (const auto type : {TtrpcType::kData, unknown}) {
    const std::string message = EncodeTtrpcHeader(5, type, 2) + "??";
    runtime_->SendRaw(EncodeMuxHeader(kPluginConnection, message.size()) + message);
  }
  EXPECT_TRUE(Create().ok());
}

TEST_F(NriFramingTest, IgnoresTheMetadataThatCallsCarry) {  // traces, since containerd 1.7.20
  Attach();
  wire::CreateContainerRequest request;
  *request.mutable_pod() = NriPod("1");
  *request.mutable_container() = NriContainer("c");
  ttrpc::Request envelope;
  envelope.set_service("nri.pkg.api.v1alpha1.Plugin");
  envelope.set_method("CreateContainer");
  envelope.set_payload(request.SerializeAsString());
  for (const char* key : {"traceparent", "traceparent", ""}) {
    ttrpc::KeyValue& entry = *envelope.add_metadata();
    entry.set_key(key);
    entry.set_value("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  }
  EXPECT_TRUE(runtime_->CallRaw(envelope).ok());
  EXPECT_EQ(events_.log().back(), "create c");
}

TEST_F(NriFramingTest, IgnoresFieldsThatItDoesNotKnow) {
  Attach();
  wire::CreateContainerRequest request;
  *request.mutable_pod() = NriPod("1");
  *request.mutable_container() = NriContainer("c");
  wire::Container::GetReflection()
      ->MutableUnknownFields(request.mutable_container())
      ->AddLengthDelimited(4242, "invented later");
  ttrpc::Request envelope;
  envelope.set_service("nri.pkg.api.v1alpha1.Plugin");
  envelope.set_method("CreateContainer");
  envelope.set_payload(request.SerializeAsString());
  ttrpc::Request::GetReflection()->MutableUnknownFields(&envelope)->AddVarint(99, 1);
  EXPECT_TRUE(runtime_->CallRaw(envelope).ok());
  EXPECT_EQ(events_.log().back(), "create c");
}

}  // namespace
}  // namespace qrm::manager::nri_framing_test
