#include "cluster/api_client.h"

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cluster/requests.h"
#include "test/cluster/client_fixture.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::cluster::api_client_test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kPods[] = "/api/v1/pods";

class ApiClientTest : public ClientFixture {
 protected:
  ApiClientTest() {
    server_.Put(kPods, {{"metadata", {{"namespace", "d"}, {"name", "p"}, {"uid", "u"}}}});
  }
  const ApiRequest get_{.path = "/api/v1/namespaces/d/pods/p"};
  const ApiRequest bind_ =
      BindRequest({.pod_namespace = "d", .pod = "p", .uid = "u", .node = "n1"});
};

TEST_F(ApiClientTest, OneConnectionCarriesRequestAfterRequest) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Call(get_).value_or(""), HasSubstr(R"("uid":"u")"));
  }
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(ApiClientTest, NoMoreConnectionsThanItMay) {
  server_.HoldWrites();
  constexpr int kCalls = 40;
  std::vector<std::promise<void>> ended(kCalls);
  loop_.Run([&] {
    for (std::promise<void>& end : ended) {
      client_->Call(bind_, [&](const StatusOr<std::string>&) { end.set_value(); });
    }
  });
  server_.LetWritesGo();
  for (std::promise<void>& end : ended) {
    end.get_future().wait();
  }
  EXPECT_LE(server_.connections(), 8);
  EXPECT_THAT(server_.requests(), SizeIs(kCalls));
}

TEST_F(ApiClientTest, ErrorsHaveTheServersWords) {
  const auto missing = Call({.path = "/api/v1/namespaces/d/pods/q"});
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(missing.status()),
              HasSubstr("cannot GET /api/v1/namespaces/d/pods/q: the API server answers 404"));
  ASSERT_TRUE(test::IsOk(Call(bind_).status()));
  const auto bound = Call(bind_);
  EXPECT_EQ(bound.status().code(), StatusCode::kAborted);
  EXPECT_THAT(MessageOf(bound.status()), HasSubstr("already assigned to node \"n1\""));
}

TEST_F(ApiClientTest, WaitsAsLongAsTheServerAsks) {
  server_.Refuse(1, 429, 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(test::IsOk(Call(get_).status()));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(990));
  EXPECT_THAT(server_.requests(), SizeIs(2));
}

TEST_F(ApiClientTest, PatienceEndsWithTheRequestsTime) {
  server_.Refuse(1, 429, 60);
  EXPECT_EQ(Call(get_).status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(ApiClientTest, ATokenThatIsRejectedIsReadAgain) {
  const test::TempDir dir;
  std::ofstream(dir / "token") << "old";
  ClusterAccess access = server_.access();
  access.token_file = dir / "token";
  loop_.Run(
      [&] { client_ = std::make_unique<ApiClient>(loop_.io(), access, ApiClient::Options()); });
  server_.SetToken("old");
  ASSERT_TRUE(test::IsOk(Call(get_).status()));
  server_.SetToken("new");
  EXPECT_EQ(Call(get_).status().code(), StatusCode::kUnauthenticated);
  std::ofstream(dir / "token") << "new";
  EXPECT_TRUE(test::IsOk(Call(get_).status()));
}

TEST_F(ApiClientTest, AWriteWithoutAnAnswerIsNotSentTwice) {
  ASSERT_TRUE(test::IsOk(Call(get_).status()));
  server_.LoseAnswers(1);
  EXPECT_EQ(Call(bind_).status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(server_.requests(), SizeIs(2));
  EXPECT_EQ(server_.Find(kPods, "d/p")["spec"]["nodeName"], "n1");
}

TEST_F(ApiClientTest, APatchOnAConnectionThatWasClosedIsSentAgain) {
  ASSERT_TRUE(test::IsOk(Call(get_).status()));
  server_.LoseAnswers(1);
  const nlohmann::json patch = {{"metadata", {{"labels", {{"a", "b"}}}}}};
  EXPECT_TRUE(test::IsOk(Call(MergePatchRequest(get_.path, patch)).status()));
  EXPECT_EQ(server_.Find(kPods, "d/p")["metadata"]["labels"]["a"], "b");
}

TEST_F(ApiClientTest, ASlowAnswerIsWaitedForNoLongerThanTheRequestSays) {
  server_.HoldWrites();
  ApiRequest request = bind_;
  request.timeout = milliseconds(50);
  EXPECT_EQ(Call(request).status().code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace qrm::cluster::api_client_test
