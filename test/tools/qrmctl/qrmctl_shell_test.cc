// qrmctl's completions, manual page and watch; and that its page shows what it prints.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/e2e/process.h"
#include "test/tools/qrmctl/qrmctl_fixture.h"
#include "tools/qrmctl/catalog.h"
#include "tools/qrmctl/follow.h"

namespace qrm::manager::cli::qrmctl_shell_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string PageText() {
  std::ifstream page("docs/qrmctl.md");
  return {std::istreambuf_iterator<char>(page), std::istreambuf_iterator<char>()};
}

TEST(CatalogTest, EveryCommandAndVerbShowsItsOptions) {
  std::size_t with_help = 0;
  for (const CatalogEntry& entry : Catalog()) {
    EXPECT_NE(entry.summary, "") << entry.command;
    EXPECT_THAT(entry.example, HasSubstr("qrmctl ")) << entry.command;
    for (const CatalogOption& option : entry.options) {
      EXPECT_NE(option.help, "") << entry.command;
      with_help += option.names.empty() || option.names.back() != "--help" ? 0U : 1U;
    }
  }
  EXPECT_EQ(with_help, Catalog().size());
}

TEST_F(QrmctlTest, CompletionOfEachShellHasEveryCommandVerbAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    ASSERT_EQ(RunAsTyped({"completion", shell}), kDone) << err();
    const std::string script = out();
    for (const CatalogEntry& entry : Catalog()) {
      std::istringstream words(entry.command);
      for (std::string word; words >> word;) {
        EXPECT_THAT(script, HasSubstr(word)) << shell;
      }
      for (const CatalogOption& option : entry.options) {
        for (const std::string& name : option.names) {
          const bool fish_long = std::string(shell) == "fish" && name.starts_with("--");
          EXPECT_THAT(script, HasSubstr(fish_long ? "-l " + name.substr(2) : name.substr(1)))
              << shell << ": " << entry.command;
        }
      }
    }
  }
  EXPECT_EQ(RunAsTyped({"completion", "csh"}), kMisuse);
}

TEST_F(QrmctlTest, BashCompletesCommandsVerbsOptionsAndFormats) {
  ASSERT_EQ(RunAsTyped({"completion", "bash"}), kDone);
  std::ofstream(dir_ / "qrmctl.bash") << out();
  const auto complete = [&](const std::string& words, int at) {
    return test::RunCommand({"/bin/bash", "-c",
                             "source " + (dir_ / "qrmctl.bash") + "; COMP_WORDS=(" + words +
                                 "); COMP_CWORD=" + std::to_string(at) +
                                 "; _qrmctl; echo \"${COMPREPLY[@]}\""})
        .value_or("");
  };
  EXPECT_EQ(complete("qrmctl po", 1), "pods pool policy\n");
  EXPECT_EQ(complete("qrmctl pool s", 2), "set\n");
  EXPECT_THAT(complete("qrmctl pool set --re", 3), HasSubstr("--resource"));
  EXPECT_EQ(complete("qrmctl --cluster w", 2), "why\n");
  EXPECT_THAT(complete("qrmctl --cluster why --ku", 3), HasSubstr("--kubeconfig"));
  EXPECT_THAT(complete("qrmctl pods --a", 2), HasSubstr("--all-namespaces"));
  EXPECT_EQ(complete("qrmctl pods -o j", 3), "json jsonpath=\n");
  EXPECT_EQ(complete("qrmctl topology -o s", 3), "svg\n");
  EXPECT_EQ(complete("qrmctl pods -o s", 3), "\n");
  EXPECT_EQ(complete("qrmctl log-level w", 2), "warning\n");
}

TEST_F(QrmctlTest, BashCompletesTheNamesOfPodsPoolsPluginsAndNamespaces) {
  Serve();
  AdmitTwoPods();
  plugins_.infos = {{.resource = "cpu", .live = true}, {.resource = "nic"}};
  plugins_.pools.emplace("cpu", std::vector<sdk::Pool>{{.name = "online"}, {.name = "offline"}});
  ASSERT_EQ(RunAsTyped({"completion", "bash"}), kDone);
  std::ofstream(dir_ / "qrmctl.bash") << out();
  // In place of the program, which asks qrmd: the answers of this test's qrmctl.
  std::ofstream script(dir_ / "names.bash");
  script << "qrmctl() {\n  case \"$*\" in\n";
  for (const auto& [command, path] : std::vector<std::pair<Args, std::string>>{
           {{"pods"}, "{range .pods[*]}{.name}{\"\\n\"}{end}"},
           {{"pods"}, "{range .pods[*]}{.namespace}{\"\\n\"}{end}"},
           {{"pool", "get"}, "{range .pools[*]}{.name}={\"\\n\"}{end}"},
           {{"plugins"}, "{range .plugins[*]}{.resource_name}{\"\\n\"}{end}"}}) {
    Args args = command;
    args.insert(args.end(), {"-o", "jsonpath=" + path});
    std::string typed;
    for (const std::string& arg : args) {
      typed += (typed.empty() ? "" : " ") + arg;
    }
    ASSERT_EQ(Run(args), kDone) << err();
    script << "    '" << typed << "') echo '" << out() << "' ;;\n";
  }
  script << "  esac\n}\n" << std::flush;
  const auto complete = [&](const std::string& words, int at) {
    return test::RunCommand({"/bin/bash", "-c",
                             "source " + (dir_ / "qrmctl.bash") + "; source " +
                                 (dir_ / "names.bash") + "; COMP_WORDS=(" + words +
                                 "); COMP_CWORD=" + std::to_string(at) +
                                 "; _qrmctl; echo \"${COMPREPLY[@]}\""})
        .value_or("");
  };
  EXPECT_THAT(complete("qrmctl explain ''", 2), HasSubstr(" db web\n"));
  EXPECT_EQ(complete("qrmctl pods w", 2), "web\n");
  EXPECT_EQ(complete("qrmctl class set d", 3), "db\n");
  EXPECT_EQ(complete("qrmctl pool set of", 3), "offline=\n");
  EXPECT_EQ(complete("qrmctl plugins forget n", 3), "nic\n");
  EXPECT_EQ(complete("qrmctl pool set --resource c", 4), "cpu\n");
  EXPECT_EQ(complete("qrmctl pods -n sh", 3), "shop shop\n");
}

TEST_F(QrmctlTest, ManHasAPageWithEveryOptionOfEveryCommand) {
  ASSERT_EQ(RunAsTyped({"man", "--directory", dir_ / "man"}), kDone) << err();
  ASSERT_EQ(RunAsTyped({"man"}), kDone);
  const std::string main = out();
  std::size_t pages = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir_ / "man")) {
    pages += file.path().extension() == ".1" ? 1U : 0U;
  }
  EXPECT_EQ(pages, Catalog().size() + 1);
  for (const CatalogEntry& entry : Catalog()) {
    Args args = {"man"};
    std::istringstream words(entry.command.substr(entry.command.find_first_not_of('-')));
    args.insert(args.end(), std::istream_iterator<std::string>(words), {});
    ASSERT_EQ(RunAsTyped(args), kDone) << err();
    std::string page = out();
    std::erase(page, '\\');
    EXPECT_THAT(page, AllOf(HasSubstr("\n.SH SYNOPSIS\n.B qrmctl " + entry.command),
                            HasSubstr(".SH EXAMPLES")));
    for (const CatalogOption& option : entry.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(page, HasSubstr(name)) << entry.command;
      }
    }
  }
  EXPECT_THAT(main, HasSubstr("qrmctl\\-pool\\-set"));
  EXPECT_EQ(RunAsTyped({"man", "nothing"}), kMisuse);
}

TEST_F(QrmctlTest, PodsAreSelectedByTheirLabels) {
  Serve();
  for (const char* name : {"db", "web"}) {
    checkpoint::PodMeta pod = test::SamplePod(name, "shop");
    pod.labels = {{"app", name}};
    snapshots_.Apply(test::Admit(pod, "main", {}));
  }
  EXPECT_EQ(Run({"pods", "-l", "app in (web)", "-o", "jsonpath={.pods[*].labels.app}"}), kDone)
      << err();
  EXPECT_EQ(out(), "web\n");
  EXPECT_EQ(Run({"pods", "--selector", "app in web"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("\"app in web\" selects no labels"));
}

TEST_F(QrmctlTest, ListingsAreLimitedToANamespaceAndSorted) {
  Serve();
  AdmitTwoPods();
  snapshots_.Apply(test::Admit(test::SamplePod("log", "kube-system"), "main", {}));
  EXPECT_EQ(Run({"pods", "-n", "kube-system"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("log"), Not(HasSubstr("web"))));
  EXPECT_EQ(Run({"pods", "-A", "--sort-by", "cpus"}), kDone) << err();
  EXPECT_LT(out().find("1-2*"), out().find("3-7"));
  EXPECT_EQ(Run({"pods", "--sort-by", "age"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("choose from NAMESPACE, POD"));
  EXPECT_EQ(Run({"pods", "-A", "-n", "shop"}), kMisuse);
  EXPECT_EQ(Run({"pods", "-n", "shop", "-o", "jsonpath={.pods[*].name}"}), kDone) << err();
  EXPECT_EQ(out(), "db web\n");
  EXPECT_EQ(Run({"pods", "-o", "wide"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("RUNTIME ID"), HasSubstr("4f3c2b1a")));
  EXPECT_EQ(Run({"pods", "-o", "jsonpath={.pods"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("a brace is not closed"));
}

TEST_F(QrmctlTest, PolicyReportsWhatAFileWouldChange) {
  node_.config_trial = manager::ConfigTrial{
      .keys =
          {{.key = "plugins", .from = "{}", .to = "{cpu: {}}"},
           {.key = "topology-policy", .from = "none", .to = "restricted", .at_next_start = true}},
      .pools = {{.resource = "cpu", .pool = "web", .from = "", .to = "2-3"}},
      .moves = {{.key = {"uid", "main"},
                 .pod_namespace = "shop",
                 .pod_name = "db",
                 .resource = "cpu",
                 .from = "0-7",
                 .to = "0-1,4-7"}}};
  Serve();
  const std::string file = dir_ / "next.yaml";
  std::ofstream(file) << "plugins: {cpu: {}}\n";
  EXPECT_EQ(Run({"policy", "diff", file}), kDone) << err();
  EXPECT_EQ(node_.tried_config, "plugins: {cpu: {}}\n");
  EXPECT_THAT(out(), AllOf(HasSubstr("plugins           {}     {cpu: {}}    at once"),
                           HasSubstr("topology-policy   none   restricted   at the next start"),
                           HasSubstr("web    cpu        none   2-3"),
                           HasSubstr("shop/db   main        cpu        0-7    0-1,4-7")));
  EXPECT_EQ(Run({"policy", "check", file}), kDone) << err();
  EXPECT_EQ(
      out(),
      "qrmd would accept it: keys that change: 1, at the next start: 1; containers that move: "
      "1\n");
}

TEST_F(QrmctlTest, PolicySaysWhyAFileWouldBeRejected) {
  node_.config_trial = Status(StatusCode::kInvalidArgument, "cannot read next.yaml:1: it is odd");
  Serve();
  const std::string file = dir_ / "next.yaml";
  std::ofstream(file) << "odd\n";
  for (const char* verb : {"check", "diff"}) {
    EXPECT_EQ(Run({"policy", verb, file}), kFailed);
    EXPECT_THAT(err(), HasSubstr("cannot read next.yaml:1: it is odd"));
  }
  EXPECT_EQ(Run({"policy", "check", dir_ / "none.yaml"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("No such file"));
  std::ofstream(file) << std::string(300000, '#');
  EXPECT_EQ(Run({"policy", "check", file}), kFailed);
  EXPECT_THAT(err(), HasSubstr("it is not a file of up to 262144 bytes"));
}

TEST_F(QrmctlTest, PolicyShowsWhatIsInForce) {
  node_.policies = {{.plugin = "cpu", .keys = "{static: true}", .place = "qrmd.yaml:4"},
                    {.plugin = "memory", .keys = "{}"}};
  Serve();
  EXPECT_EQ(Run({"policy", "show"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("cpu      {static: true}   qrmd.yaml:4"),
                           HasSubstr("memory   {}               the defaults")));
  EXPECT_EQ(Run({"policy"}), kMisuse);
}

int looks;
int CountLooks(const Args&, std::ostream& out, std::ostream&) {
  out << (++looks < 3 ? "one\n" : "two\n");
  return looks < 5 ? kDone : kFailed;
}

TEST(WatchTest, ShowsWhatChangedUntilTheCommandFails) {
  looks = 0;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Watch(CountLooks, {}, out, err, [](std::ostream&) { return true; }), kFailed);
  EXPECT_EQ(out.str(), "one\n---\ntwo\ntwo\n");
  EXPECT_TRUE(IsWatched({"-o", "wide", "-w"}));
  EXPECT_FALSE(IsWatched({"-o", "wide"}));
}

void AddDecisions(test::FakeNodeServices& node) {
  node.decisions.push_back({.key = {"uid-web", "main"},
                            .pod_namespace = "shop",
                            .pod_name = "web",
                            .time = std::chrono::system_clock::from_time_t(7),
                            .json = R"({"result": "rejected", "message": "no CPU"})"});
  node.decisions.push_back({.key = {"uid-db", "main"},
                            .pod_namespace = "shop",
                            .pod_name = "db",
                            .time = std::chrono::system_clock::from_time_t(9),
                            .admitted = true,
                            .json = R"({"result": "admitted", "allocations":
                   {"cpu": {"property": "CpusetCpus", "value": "1-2"}, "nic": {}}})"});
  node.events.push_back({.time = std::chrono::system_clock::from_time_t(12),
                         .json = R"({"message": "pools of cpu set: online: 0-3 -> 0-1",
                                     "by": "uid 0, pid 4711"})",
                         .type = "pool"});
}

TEST_F(QrmctlTest, EventsListsDecisionsAndOtherChanges) {
  Serve();
  EXPECT_EQ(Run({"events"}), kDone) << err();
  EXPECT_EQ(out(), "There are no recent events.\n");
  AddDecisions(node_);
  EXPECT_EQ(Run({"events"}), kDone) << err();
  EXPECT_EQ(out(),
            "TIME                   TYPE        RESULT     NAMESPACE   POD   CONTAINER   WHAT\n"
            "1970-01-01T00:00:07Z   admission   rejected   shop        web   main        no CPU\n"
            "1970-01-01T00:00:09Z   admission   admitted   shop        db    main        cpu: "
            "CpusetCpus=1-2, nic\n"
            "1970-01-01T00:00:12Z   pool        -          -           -     -           pools of "
            "cpu set: "
            "online: 0-3 -> 0-1 (by uid 0, pid 4711)\n");
  EXPECT_EQ(Run({"events", "--since", "1h"}), kDone);
  EXPECT_EQ(out(), "There are no recent events.\n");
}

TEST_F(QrmctlTest, EventsAreSelectedByPodAndType) {
  Serve();
  AddDecisions(node_);
  node_.decisions.push_back({.key = {"uid-db", "main"},
                             .pod_namespace = "shop",
                             .pod_name = "db",
                             .time = std::chrono::system_clock::from_time_t(11),
                             .admitted = true,
                             .json = R"({"moment": "resize", "result": "admitted"})"});
  const std::string types = "jsonpath={.events[*].type}";
  EXPECT_EQ(Run({"events", "shop/db", "-o", types}), kDone) << err();
  EXPECT_EQ(out(), "admission resize\n");
  EXPECT_EQ(Run({"events", "--type", "pool,resize", "-o", types}), kDone) << err();
  EXPECT_EQ(out(), "resize pool\n");
  EXPECT_EQ(Run({"events", "-o", "jsonpath={.events[3].by}"}), kDone) << err();
  EXPECT_EQ(out(), "uid 0, pid 4711\n");
  EXPECT_EQ(Run({"events", "--type", "pools"}), kMisuse);
  EXPECT_THAT(err(),
              HasSubstr("\"pools\" is not a type of events; choose from admission, resize, "));
}

TEST_F(QrmctlTest, LogLevelIsShownAndChanged) {
  Serve();
  EXPECT_EQ(Run({"log-level"}), kDone) << err();
  EXPECT_EQ(out(), "info\n");
  EXPECT_EQ(Run({"log-level", "warning"}), kDone) << err();
  EXPECT_EQ(out(), "log level: info -> warning\n");
  EXPECT_EQ(Run({"log-level", "info"}), kDone) << err();
  EXPECT_EQ(Run({"log-level", "loud"}), kFailed);
}

TEST_F(QrmctlTest, TopShowsNodesPoolsAndContainers) {
  Serve();
  AdmitTwoPods();
  plugins_.pools.emplace("cpu",
                         std::vector<sdk::Pool>{{.name = "online", .cpus = {3, 4, 5, 6, 7}}});
  EXPECT_EQ(Run({"top"}), kDone) << err();
  EXPECT_EQ(out(),
            "NODE   OWNED   SHARED   FREE   MEMORY   CONTAINERS\n"
            "0      2       1        1      2Gi      2\n"
            "1      0       4        0      0        1\n"
            "\n"
            "POOL     CPUS   COUNT   CONTAINERS\n"
            "online   3-7    5       0\n"
            "\n"
            "CONTAINER       NODE   CPUS   MEMORY   STATE\n"
            "shop/db/main    0      1-2*   2Gi      -\n"
            "shop/web/main   0      3      -        -\n"
            "shop/web/main   1      4-7    -        -\n");
}

TEST(QrmctlPageTest, DescribesEveryCommandAndOption) {
  const std::string page = PageText();
  for (const CatalogEntry& entry : Catalog()) {
    EXPECT_THAT(page, HasSubstr("qrmctl " + entry.command)) << "docs/qrmctl.md";
    for (const CatalogOption& option : entry.options) {
      if (!option.names.empty() && option.names.back() != "--help") {
        EXPECT_THAT(page, HasSubstr("`" + option.names.back())) << entry.command;
      }
    }
  }
}

/// The samples of the page: a command, and the text below it.
std::vector<std::pair<std::string, std::string>> Samples() {
  std::vector<std::pair<std::string, std::string>> samples;
  std::istringstream page(PageText());
  bool in_sample = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("$ qrmctl ")) {
      samples.emplace_back(line.substr(9), "");
      in_sample = true;
    } else if (line.starts_with("```") || line.empty()) {
      in_sample = in_sample && !line.starts_with("```");
    } else if (in_sample) {
      samples.back().second += line + "\n";
    }
  }
  return samples;
}

TEST_F(QrmctlTest, PageShowsWhatTheCommandsPrint) {
  Serve();
  SetUsualStatus();
  AdmitTwoPods();
  AddDecisions(node_);
  NodeStatus status = node_.Status();
  status.warnings.clear();
  status.reconcile.last_problem.clear();
  status.version = "0.1.0";
  SetStatus(status);
  plugins_.pools.emplace(
      "cpu", std::vector<sdk::Pool>{
                 {.name = "online", .cpus = {0, 1, 2, 3}, .roles = {"web", "api"}, .containers = 2},
                 {.name = "offline", .cpus = {4, 5, 7}}});
  std::vector<std::string> compared;
  for (const auto& [command, want] : Samples()) {
    if (command != "status" && command != "pods" && command != "pool get" && command != "top" &&
        command != "events" && command != "log-level") {
      continue;  // the other samples are of nodes that tests elsewhere have
    }
    compared.push_back(command);
    std::istringstream words(command);
    ASSERT_EQ(Run({std::istream_iterator<std::string>(words), {}}), kDone) << err();
    std::string printed;
    std::istringstream lines(out());
    for (std::string line; std::getline(lines, line);) {
      printed += line.empty() ? "" : line + "\n";
    }
    EXPECT_EQ(printed, want) << "docs/qrmctl.md shows another output of qrmctl " << command;
  }
  EXPECT_THAT(compared, SizeIs(6));
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_shell_test
