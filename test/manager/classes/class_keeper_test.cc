#include "manager/classes/class_keeper.h"

#include <future>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/classes/class_change.h"
#include "manager/classes/class_worker.h"
#include "test/support/fake_class_provider.h"
#include "test/support/is_ok.h"
#include "test/support/memory_store.h"

namespace qrm::manager::class_keeper_test {
namespace {

using test::FakeClassProvider;
using test::IsOk;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

sdk::ClassType Blockio() {
  return {.name = "blockio", .classes = {{.name = "fast", .capacity = 1}, {.name = "slow"}}};
}

WantedClass Wanted(const std::string& container, const std::string& id, const std::string& name) {
  return {{.key = {"pod1", container}, .runtime_id = id, .cgroups_path = "/pod1/" + id}, name};
}

WantedClasses All(const std::vector<WantedClass>& each) {
  WantedClasses all;
  for (const WantedClass& one : each) {
    all[one.target.key] = one;
  }
  return all;
}

class ClassWorkerTest : public testing::Test {
 protected:
  FakeClassProvider provider_{Blockio()};
  ClassWorker worker_{provider_};
};

TEST_F(ClassWorkerTest, GivesWhatIsMissingAndThenChangesNothing) {
  worker_.Round(All({Wanted("main", "1", "slow")}));
  worker_.Round(All({Wanted("main", "1", "slow")}));
  EXPECT_THAT(provider_.calls(), ElementsAre("apply main/1 ->slow"));
  EXPECT_EQ(worker_.GetWork().repairs, 0u);
}

TEST_F(ClassWorkerTest, PutsBackWhatOthersChangedAndCountsIt) {
  worker_.Round(All({Wanted("main", "1", "slow")}));
  provider_.Meddle("1", "");
  worker_.Round(All({Wanted("main", "1", "slow")}));
  EXPECT_EQ(provider_.ClassOf("1"), "slow");
  EXPECT_EQ(worker_.GetWork().repairs, 1u);
}

TEST_F(ClassWorkerTest, ChangesFromTheClassThatItGave) {
  ASSERT_TRUE(IsOk(worker_.Give(Wanted("main", "1", "slow"))));
  ASSERT_TRUE(IsOk(worker_.Give(Wanted("main", "1", "fast"))));
  EXPECT_THAT(provider_.calls(), ElementsAre("apply main/1 ->slow", "apply main/1 slow->fast"));
}

TEST_F(ClassWorkerTest, ReleasesContainersThatAreGoneOrWereRecreated) {
  worker_.Round(All({Wanted("main", "1", "slow"), Wanted("side", "2", "slow")}));
  worker_.Round(All({Wanted("main", "3", "slow")}));
  EXPECT_THAT(provider_.calls(),
              ElementsAre("apply main/1 ->slow", "apply side/2 ->slow", "release main/1",
                          "release side/2", "apply main/3 ->slow"));
}

TEST_F(ClassWorkerTest, ReportsContainersWithoutTheValuesOfTheirClassUntilTheyHaveThem) {
  provider_.on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  worker_.Round(All({Wanted("main", "1", "slow")}));
  EXPECT_THAT(worker_.GetWork().problems,
              ElementsAre(AllOf(HasSubstr("container main"), HasSubstr("the disk is busy"))));
  provider_.on_apply = [](const auto&, const auto&) { return OkStatus(); };
  worker_.Round(All({Wanted("main", "1", "slow")}));
  EXPECT_THAT(worker_.GetWork().problems, IsEmpty());
}

TEST_F(ClassWorkerTest, NotesAProblemOnceAndForgetsItWithItsContainer) {
  std::vector<std::string> noted;
  ClassWorker worker(provider_, [&](const auto& event) { noted.push_back(event.message); });
  provider_.on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  const WantedClass wanted = Wanted("main", "1", "slow");
  worker.Round(All({wanted}));
  worker.Round(All({wanted}));
  EXPECT_THAT(noted, ElementsAre(HasSubstr("the disk is busy")));
  EXPECT_THAT(worker.ProblemOf(wanted.target.key), HasSubstr("the disk is busy"));
  worker.Round({});
  EXPECT_THAT(worker.GetWork().problems, IsEmpty());
}

TEST_F(ClassWorkerTest, TakesBackAClassThatDoesNotExistAnyMoreAndReportsIt) {
  provider_.Meddle("1", "gold");
  WantedClass lost = Wanted("main", "1", "");
  lost.lost = "gold";
  worker_.Round(All({lost}));
  worker_.Round(All({lost}));
  EXPECT_THAT(provider_.calls(), ElementsAre("apply main/1 gold->"));
  EXPECT_THAT(worker_.GetWork().problems,
              ElementsAre(HasSubstr("runs without blockio class gold")));
  worker_.Round(All({Wanted("main", "1", "gold")}));
  EXPECT_EQ(provider_.ClassOf("1"), "gold");
  EXPECT_THAT(worker_.GetWork().problems, IsEmpty());
}

TEST_F(ClassWorkerTest, ListsTheValuesOfALostClassThatCannotBeTakenBackUntilTheContainerEnds) {
  provider_.on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kFailedPrecondition, "only kubelet knows the former value");
  };
  WantedClass lost = Wanted("main", "1", "");
  lost.lost = "gold";
  worker_.Round(All({lost}));
  EXPECT_THAT(
      worker_.GetWork().left,
      ElementsAre(Pair(lost.target.key, LeftClass{"gold", "only kubelet knows the former value"})));
  EXPECT_THAT(worker_.GetWork().problems, ElementsAre(HasSubstr("keeps values of blockio class")));
  worker_.Round({});
  EXPECT_THAT(worker_.GetWork().left, IsEmpty());
}

TEST_F(ClassWorkerTest, TakesAContainerThatEndedMeanwhileForDone) {
  provider_.on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kNotFound, "no such cgroup");
  };
  EXPECT_TRUE(IsOk(worker_.Give(Wanted("main", "1", "slow"))));
}

TEST_F(ClassWorkerTest, AnExceptionOfATypeIsAnErrorOfThatCall) {
  provider_.on_apply = [](const auto&, const auto&) -> Status { throw std::runtime_error("oops"); };
  EXPECT_EQ(worker_.Give(Wanted("main", "1", "slow")).code(), StatusCode::kInternal);
}

// A node with one pod of one container, which has class slow.
class ClassKeeperTest : public testing::Test {
 protected:
  ClassKeeperTest() {
    ClassBook::Providers providers;
    auto provider = std::make_unique<FakeClassProvider>(Blockio());
    provider_ = provider.get();
    providers.push_back(std::move(provider));
    book_ = std::make_unique<ClassBook>(ClassesOptions(), std::move(providers));
    keeper_ = std::make_unique<ClassKeeper>(
        ClassKeeper::Parts{
            .io = io_,
            .state = state_,
            .live = live_,
            .book = *book_,
            .note = [this](const auto& event) { Note(event); },
            .may_ask = [](const auto&, const auto& name) { return name == "blockio/fast"; }},
        std::chrono::hours(1));
    Put("web", "slow");
    live_.Add({"uid-web", "main"}, {.id = "1", .pod_id = "p", .cgroups_path = "/kubepods/p/1"});
    keeper_->Start();
  }
  void TearDown() override { state_.Stop(); }

  // Threads: the state loop, or the type's.
  void Note(const checkpoint::NodeEvent& event) {
    const MutexLock lock(mutex_);
    noted_.push_back(event);
  }
  /// A running container of which nothing is on record, though its pod asks for `name`.
  void PutAsking(const std::string& name) {
    checkpoint::Change change;
    checkpoint::PodMeta pod{.uid = "uid-late", .pod_namespace = "default", .name = "late"};
    pod.annotations.Edit()["blockio.resources.alpha.kubernetes.io/default"] = name;
    change.put_containers.push_back({pod, "main", {}});
    ASSERT_TRUE(IsOk(test::RunOn(state_, [&] { return state_.Commit(change); })));
    live_.Reset(
        {{"uid-web", {"p"}}, {"uid-late", {"q"}}},
        {{{"uid-web", "main"}, {.id = "1", .pod_id = "p", .cgroups_path = "/kubepods/p/1"}},
         {{"uid-late", "main"}, {.id = "2", .pod_id = "q", .cgroups_path = "/kubepods/q/2"}}});
  }
  /// A round, and what it posts.
  void Round() {
    std::promise<void> done;
    keeper_->Refresh("blockio");
    keeper_->Set({"web", "main", "blockio", "slow"},
                 [&](const auto&) { done.set_value(); });  // on the type's thread, after the round
    done.get_future().get();
    test::Settle(state_);
  }
  std::string LateProblem() {
    const auto problems = keeper_->ProblemsOf({"uid-late", "main"});
    return problems.empty() ? "" : problems.front();
  }

  void Put(const std::string& pod, const std::string& name) {
    checkpoint::Change change;
    change.put_containers.push_back({{.uid = "uid-" + pod, .pod_namespace = "default", .name = pod},
                                     "main",
                                     {.classes = {{"blockio", name}}}});
    ASSERT_TRUE(IsOk(test::RunOn(state_, [&] { return state_.Commit(change); })));
  }
  StatusOr<std::string> Set(const ClassChange& change) {
    std::promise<StatusOr<std::string>> done;
    keeper_->Set(change, [&](const StatusOr<std::string>& former) { done.set_value(former); });
    auto former = done.get_future().get();
    test::Settle(state_);
    return former;
  }
  std::string RecordedClass() {
    return state_.Load()->Find({"uid-web", "main"})->classes.at("blockio");
  }

  boost::asio::io_context io_;
  test::Journal journal_;
  LiveContainers live_;
  FakeClassProvider* provider_ = nullptr;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  std::unique_ptr<ClassBook> book_;
  Mutex mutex_;
  std::vector<checkpoint::NodeEvent> noted_;
  std::unique_ptr<ClassKeeper> keeper_;
};

TEST_F(ClassKeeperTest, GivesAContainerItsClassBeforeItStarts) {
  std::promise<Status> done;
  keeper_->Prepare({"uid-web", "main"}, [&](const Status& given) { done.set_value(given); });
  EXPECT_TRUE(IsOk(done.get_future().get()));
  EXPECT_EQ(provider_->ClassOf("1"), "slow");
}

TEST_F(ClassKeeperTest, FailsTheStartOfAContainerWhoseClassCannotBeGiven) {
  provider_->on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  std::promise<std::string> done;
  keeper_->Prepare({"uid-web", "main"},
                   [&](const Status& given) { done.set_value(MessageOf(given)); });
  EXPECT_EQ(done.get_future().get(), "cannot give blockio class slow: the disk is busy");
}

TEST_F(ClassKeeperTest, AChangeIsOnRecordBeforeTheKernelHasIt) {
  std::string at_apply;
  provider_->on_apply = [&](const auto&, const auto&) {
    at_apply = RecordedClass();
    return OkStatus();
  };
  EXPECT_EQ(Set({"web", "main", "blockio", "fast", "uid 0, pid 7"}).value_or("?"), "slow");
  EXPECT_EQ(at_apply, "fast");
  EXPECT_EQ(provider_->ClassOf("1"), "fast");
  ASSERT_EQ(noted_.size(), 1U);
  EXPECT_EQ(noted_[0].message, "blockio class: slow -> fast");
  EXPECT_EQ(noted_[0].by, "uid 0, pid 7");
  EXPECT_EQ(noted_[0].key.pod_uid, "uid-web");
}

TEST_F(ClassKeeperTest, AChangeThatTheKernelRejectsIsTakenBack) {
  provider_->on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  EXPECT_THAT(MessageOf(Set({"web", "main", "blockio", "fast"}).status()),
              HasSubstr("the disk is busy"));
  EXPECT_EQ(RecordedClass(), "slow");
  ASSERT_EQ(noted_.size(), 2U);
  EXPECT_EQ(noted_[1].message, "blockio class: fast -> slow");
}

TEST_F(ClassKeeperTest, AChangeToAFullClassIsRejectedAndChangesNothing) {
  Put("other", "fast");
  const auto changed = Set({"web", "main", "blockio", "fast"});
  EXPECT_EQ(changed.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(changed.status()), HasSubstr("its classes are fast and slow"));
  EXPECT_EQ(RecordedClass(), "slow");
  EXPECT_THAT(provider_->calls(), testing::Not(Contains(HasSubstr("apply"))));
}

TEST_F(ClassKeeperTest, ReportsWhatIsWrongWithAChange) {
  EXPECT_THAT(MessageOf(Set({"nobody", "main", "blockio", "fast"}).status()),
              HasSubstr("no pod nobody is admitted"));
  EXPECT_THAT(MessageOf(Set({"web", "none", "blockio", "fast"}).status()),
              HasSubstr("has no container none"));
  EXPECT_THAT(MessageOf(Set({"web", "main", "rdt", "fast"}).status()),
              HasSubstr("this node has no type rdt; it has blockio"));
  EXPECT_THAT(MessageOf(Set({"web", "", "blockio", "fast"}).status()), HasSubstr("name one"));
}

TEST_F(ClassKeeperTest, WhatAContainerAskedForWhileItsTypeWasOffIsGivenOnceTheTypeIsOn) {
  PutAsking("fast");
  Round();
  Round();
  EXPECT_EQ(provider_->ClassOf("2"), "fast");
  EXPECT_EQ(LateProblem(), "");
}

TEST_F(ClassKeeperTest, WhatCannotBeGivenLateIsAProblemOfThatContainer) {
  Put("other", "fast");
  PutAsking("fast");
  Round();
  EXPECT_THAT(LateProblem(), AllOf(HasSubstr("default=fast asks for blockio class fast, but runs"),
                                   HasSubstr("the class is full (capacity 1)")));
  ASSERT_TRUE(
      IsOk(test::RunOn(state_, [&] { return state_.Commit({.remove_pods = {"uid-other"}}); })));
  Round();
  Round();
  EXPECT_EQ(LateProblem(), "");
  EXPECT_EQ(provider_->ClassOf("2"), "fast");
}

TEST_F(ClassKeeperTest, AnAnnotationOfBeforeTheTypeWasOnThatNamesNoClassIsAProblemOfItsContainer) {
  PutAsking("-fast");
  Round();
  EXPECT_THAT(LateProblem(), AllOf(HasSubstr("default=-fast does not name a class"),
                                   HasSubstr("it runs without class of blockio")));
}

TEST_F(ClassKeeperTest, NoClassIsGivenLateWithoutPermission) {
  PutAsking("slow");
  Round();
  EXPECT_THAT(LateProblem(), HasSubstr("its namespace may not ask for it"));
  EXPECT_EQ(provider_->ClassOf("2"), "");
}

TEST_F(ClassKeeperTest, AnImmutableClassThatCameTooLateIsAProblemOfThatContainer) {
  provider_->type.is_mutable = false;
  PutAsking("fast");
  keeper_->Refresh("blockio");
  keeper_.reset();  // after the round
  EXPECT_THAT(noted_, testing::Contains(testing::Field(
                          &checkpoint::NodeEvent::message,
                          HasSubstr("cannot change while a container runs; recreate the pod"))));
}

sdk::ClassType OfPods() {
  return {.name = "memory-protection",
          .level = sdk::ClassLevel::kPod,
          .classes = {{.name = "db"}, {.name = "web"}}};
}

TEST(PodLevelClassTest, ChangesForARunningPodAsAWhole) {
  boost::asio::io_context io;
  test::Journal journal;
  LiveContainers live;
  StateLoop state{test::OpenMemoryStore(journal)};
  ClassBook::Providers providers;
  auto owned = std::make_unique<FakeClassProvider>(OfPods());
  FakeClassProvider& provider = *owned;
  providers.push_back(std::move(owned));
  ClassBook book(ClassesOptions(), std::move(providers));
  ClassKeeper keeper({.io = io, .state = state, .live = live, .book = book}, std::chrono::hours(1));
  checkpoint::Change change;
  for (const char* name : {"main", "side"}) {
    change.put_containers.push_back({{.uid = "uid", .pod_namespace = "default", .name = "web"},
                                     name,
                                     {.classes = {{"memory-protection", "web"}}}});
    live.Add({"uid", name}, {.id = name, .pod_id = "p", .cgroups_path = "/kubepods/p/c"});
  }
  ASSERT_TRUE(IsOk(test::RunOn(state, [&] { return state.Commit(change); })));
  std::promise<std::string> former;
  keeper.Set({"web", "", "memory-protection", "db"}, [&](const StatusOr<std::string>& done) {
    former.set_value(done.value_or(MessageOf(done.status())));
  });
  EXPECT_EQ(former.get_future().get(), "web");
  EXPECT_THAT(provider.calls(), ElementsAre("apply /p ->db"));
  for (const char* name : {"main", "side"}) {
    EXPECT_EQ(state.Load()->Find({"uid", name})->classes.at("memory-protection"), "db");
  }
  state.Stop();
}

TEST(PodLevelClassTest, IsKeptThoughAContainerWasCreatedWhileTheTypeWasOff) {
  checkpoint::PodMeta pod{.uid = "uid", .name = "web"};
  pod.annotations.Edit()["memory-protection.resources.qrm.io/pod"] = "db";
  checkpoint::Change change;
  change.put_containers.push_back({pod, "main", {.classes = {{"memory-protection", "db"}}}});
  change.put_containers.push_back({pod, "side", {}});
  LiveContainers live;
  live.Add({"uid", "side"}, {.id = "1", .pod_id = "p", .cgroups_path = "/kubepods/p/c"});
  const OfferedType type{.type = OfPods(), .rules = std::make_shared<ClassTypeRules>()};
  const WantedClasses all = WantedOf(type, checkpoint::NodeState().With(change), live);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.begin()->second.name, "db");
  EXPECT_EQ(all.begin()->second.asked, "");
}

TEST(WantedOfTest, LeavesOutContainersThatHaveNoClassAndAskForNone) {
  checkpoint::Change change;
  change.put_containers.push_back({{.uid = "uid", .name = "web"}, "main", {}});
  LiveContainers live;
  live.Add({"uid", "main"}, {.id = "1", .pod_id = "p", .cgroups_path = "/kubepods/p/1"});
  const OfferedType type{.type = Blockio(), .rules = std::make_shared<ClassTypeRules>()};
  EXPECT_THAT(WantedOf(type, checkpoint::NodeState().With(change), live), IsEmpty());
}

TEST_F(ClassKeeperTest, AChangeThatTheKernelRejectsLeavesTheRequestOfAnAnnotationOpen) {
  PutAsking("fast");
  provider_->on_apply = [](const auto&, const auto&) {
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  EXPECT_FALSE(Set({"late", "main", "blockio", "slow"}).ok());
  EXPECT_FALSE(state_.Load()->Find({"uid-late", "main"})->classes.contains("blockio"));
}

TEST_F(ClassKeeperTest, AChangeThatTheKernelRejectsIsTakenBackThoughTheFormerClassIsFull) {
  ASSERT_TRUE(Set({"web", "main", "blockio", "fast"}).ok());
  provider_->on_apply = [&](const auto&, const auto&) {
    Put("other", "fast");
    return Errorf(StatusCode::kUnavailable, "the disk is busy");
  };
  EXPECT_FALSE(Set({"web", "main", "blockio", "slow"}).ok());
  EXPECT_EQ(RecordedClass(), "fast");
}

TEST_F(ClassKeeperTest, ListsClassesOfTypesWithoutAProvider) {
  checkpoint::Change change;
  change.put_containers.push_back({{.uid = "uid-web", .pod_namespace = "default", .name = "web"},
                                   "main",
                                   {.classes = {{"blockio", "slow"}, {"memory", "batch"}}}});
  ASSERT_TRUE(IsOk(test::RunOn(state_, [&] { return state_.Commit(change); })));
  const auto types = keeper_->GetStatus();
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].offered.type.name, "memory");
  EXPECT_TRUE(types[0].offered.is_retired);
  EXPECT_THAT(types[0].left,
              ElementsAre(HasSubstr("container main of pod default/web keeps values of class "
                                    "batch: qos-classes is off")));
  EXPECT_THAT(types[1].left, IsEmpty());
}

TEST_F(ClassKeeperTest, CountsContainersOfAClass) {
  Put("other", "fast");
  const auto types = keeper_->GetStatus();
  ASSERT_EQ(types.size(), 1u);
  EXPECT_EQ(types[0].users.at("slow"), 1u);
  EXPECT_EQ(types[0].users.at("fast"), 1u);
}

}  // namespace
}  // namespace qrm::manager::class_keeper_test
