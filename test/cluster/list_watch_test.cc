#include "cluster/list_watch.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/mutex.h"
#include "test/cluster/client_fixture.h"
#include "test/support/await.h"

namespace qrm::cluster::list_watch_test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using test::Await;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr char kThings[] = "/apis/test.io/v1/things";

json Thing(const std::string& name, int value) {
  return {{"metadata", {{"name", name}}}, {"value", value}};
}

/// The objects that exist in the listener's view.
class Mirror final : public ObjectListener {
 public:
  using Values = std::map<std::string, int>;

  void OnListBegin() override { listed_.clear(); }
  void OnItem(const json& object) override {
    listed_[object["metadata"]["name"]] = object["value"].get<int>();
  }
  void OnListEnd(const std::string& version) override {
    const MutexLock lock(mutex_);
    values_ = std::move(listed_);
    version_ = version;
    ++lists_;
  }
  void OnSet(const json& object) override {
    const MutexLock lock(mutex_);
    values_[object["metadata"]["name"]] = object["value"].get<int>();
    version_ = object["metadata"]["resourceVersion"];
  }
  void OnDelete(const json& object) override {
    const MutexLock lock(mutex_);
    values_.erase(object["metadata"]["name"].get<std::string>());
  }
  void OnVersion(const std::string& version) override {
    const MutexLock lock(mutex_);
    version_ = version;
  }

  Values values() const {
    const MutexLock lock(mutex_);
    return values_;
  }
  std::string version() const {
    const MutexLock lock(mutex_);
    return version_;
  }
  int lists() const {
    const MutexLock lock(mutex_);
    return lists_;
  }

 private:
  Values listed_;
  mutable Mutex mutex_;
  Values values_ QRM_GUARDED_BY(mutex_);
  std::string version_ QRM_GUARDED_BY(mutex_);
  int lists_ QRM_GUARDED_BY(mutex_) = 0;
};

class ListWatchTest : public ClientFixture {
 protected:
  ListWatchTest() {
    server_.Put(kThings, Thing("a", 1));
    server_.Put(kThings, Thing("b", 2));
  }
  void TearDown() override {
    loop_.Run([&] { watch_.reset(); });
  }

  void Start(ListWatchOptions options = {}) {
    options.path = kThings;
    options.first_backoff = milliseconds(1);
    options.most_backoff = milliseconds(50);
    loop_.Run([&] {
      watch_ = std::make_unique<ListWatch>(loop_.io(), *client_, options, mirror_);
      watch_->Start();
    });
  }
  bool Shows(const Mirror::Values& values) {
    return Await([&] { return mirror_.values() == values; });
  }
  /// Lists, and waits until its first watch is there.
  void StartAndWatch(const ListWatchOptions& options = {}) {
    Start(options);
    ASSERT_TRUE(Shows({{"a", 1}, {"b", 2}}));
    AwaitWatches(1);
  }
  void AwaitWatches(int count) {
    ASSERT_TRUE(Await([&] { return Watches() >= count; })) << Watches();
  }
  int Watches() const {
    int count = 0;
    for (const std::string& request : server_.requests()) {
      count += request.find("watch=1") == std::string::npos ? 0 : 1;
    }
    return count;
  }

  Mirror mirror_;
  std::unique_ptr<ListWatch> watch_;
};

TEST_F(ListWatchTest, ListsInPagesAndThenFollows) {
  Start({.page_size = 1});
  ASSERT_TRUE(Shows({{"a", 1}, {"b", 2}}));
  server_.Put(kThings, Thing("c", 3));
  server_.Put(kThings, Thing("a", 4));
  server_.Delete(kThings, "b");
  EXPECT_TRUE(Shows({{"a", 4}, {"c", 3}}));
  EXPECT_EQ(mirror_.lists(), 1);
}

TEST_F(ListWatchTest, APageThatIsTooLargeIsHalvedUntilItFits) {
  Mirror::Values all{{"a", 1}, {"b", 2}};
  for (const char* name : {"c", "d", "e", "f"}) {
    json large = Thing(name, 3);
    large["notes"] = std::string(1000, 'x');
    server_.Put(kThings, large);
    all[name] = 3;
  }
  Start({.page_size = 8, .most_page_bytes = 1500});
  EXPECT_TRUE(Shows(all)) << watch_->status().trouble;
  EXPECT_EQ(watch_->status().lists, 1U);
  EXPECT_THAT(server_.requests(), Contains(HasSubstr("limit=1&continue=2")));
}

TEST_F(ListWatchTest, AnObjectThatIsTooLargeForAPageIsReported) {
  Start({.most_page_bytes = 20});
  EXPECT_TRUE(Await([&] {
    return MessageOf(watch_->status().trouble).find("more than 20 bytes") != std::string::npos;
  })) << watch_->status().trouble;
}

TEST_F(ListWatchTest, EventsThatComeInPiecesAreWhole) {
  server_.SendInPieces();
  StartAndWatch();
  server_.Put(kThings, Thing("c", 3));
  EXPECT_TRUE(Shows({{"a", 1}, {"b", 2}, {"c", 3}}));
}

TEST_F(ListWatchTest, AWatchThatIsCutGoesOnWhereItWas) {
  StartAndWatch();
  server_.Put(kThings, Thing("a", 5));
  ASSERT_TRUE(Shows({{"a", 5}, {"b", 2}}));
  server_.CutWatches();
  server_.Put(kThings, Thing("b", 6));
  EXPECT_TRUE(Shows({{"a", 5}, {"b", 6}}));
  EXPECT_EQ(mirror_.lists(), 1) << "nothing was listed again";
}

TEST_F(ListWatchTest, WhatTheServerHasForgottenIsListedAgain) {
  StartAndWatch();
  server_.ForgetHistory();
  server_.CutWatches();
  server_.Delete(kThings, "a");
  EXPECT_TRUE(Shows({{"b", 2}}));
  EXPECT_TRUE(Await([&] { return mirror_.lists() == 2; }));
}

TEST_F(ListWatchTest, OlderDataThanWasSeenIsListedAgain) {
  StartAndWatch();
  const uint64_t before = server_.version();
  server_.Put(kThings, Thing("c", 3));
  ASSERT_TRUE(Shows({{"a", 1}, {"b", 2}, {"c", 3}}));
  server_.RestoreTo(before);
  EXPECT_TRUE(Shows({{"a", 1}, {"b", 2}}));
}

TEST_F(ListWatchTest, ABookmarkMovesTheVersion) {
  StartAndWatch();
  server_.Put("/apis/test.io/v1/others", Thing("x", 1));
  server_.SendBookmarks();
  EXPECT_TRUE(Await([&] { return mirror_.version() == std::to_string(server_.version()); }));
}

TEST_F(ListWatchTest, AServerThatIsSilentIsTakenForDead) {
  StartAndWatch({.silence = milliseconds(50)});
  EXPECT_TRUE(Await([&] { return mirror_.lists() > 1 || Watches() > 1; }));
}

TEST_F(ListWatchTest, SurvivesRejectionsAndReportsThem) {
  server_.Refuse(3, 503);
  Start();
  ASSERT_TRUE(Shows({{"a", 1}, {"b", 2}}));
  EXPECT_TRUE(Await([&] { return watch_->status().trouble.ok(); }));
  EXPECT_TRUE(watch_->status().listed);
  EXPECT_EQ(watch_->status().lists, 4U);
}

TEST_F(ListWatchTest, ReportsTroubleWhileItLasts) {
  StartAndWatch();
  server_.Refuse(1'000'000, 403);
  server_.CutWatches();
  EXPECT_TRUE(Await([&] {
    return watch_->status().trouble.code() == StatusCode::kPermissionDenied;
  })) << watch_->status().trouble;
  EXPECT_TRUE(watch_->status().listed) << "what is known stays known";
  server_.Refuse(0, 0);
  EXPECT_TRUE(Await([&] { return watch_->status().trouble.ok(); }));
}

TEST_F(ListWatchTest, AnObjectBeyondTheBoundsIsTroubleUntilItIsGone) {
  StartAndWatch();
  json deep = Thing("deep", 3);
  for (int i = 0; i < 100; ++i) {
    deep["inner"] = json(deep["inner"]).is_null() ? json::array() : json::array({deep["inner"]});
  }
  server_.Put(kThings, deep);
  EXPECT_TRUE(Await([&] {
    return MessageOf(watch_->status().trouble).find("nested more than 64 deep") !=
           std::string::npos;
  })) << watch_->status().trouble;
  EXPECT_EQ(mirror_.values(), (Mirror::Values{{"a", 1}, {"b", 2}}));
  server_.Delete(kThings, "deep");
  server_.Put(kThings, Thing("c", 4));
  EXPECT_TRUE(Shows({{"a", 1}, {"b", 2}, {"c", 4}}));
}

TEST_F(ListWatchTest, AFieldSelectorIsSentWithEveryRequest) {
  StartAndWatch({.field_selector = "status.phase!=Failed"});
  for (const std::string& request : server_.requests()) {
    EXPECT_THAT(request, HasSubstr("&fieldSelector=status.phase%21%3DFailed"));
    EXPECT_THAT(request, Not(HasSubstr("resourceVersion=0")));
  }
}

}  // namespace
}  // namespace qrm::cluster::list_watch_test
