// Serves the page's files, and documents that are cached for half a second.
#include "manager/control/page_server.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/base/rejected.h"
#include "api/http/http_address.h"
#include "api/http/http_listener.h"
#include "manager/control/page_decisions.h"
#include "manager/control/page_document.h"
#include "manager/observability/node_services.h"
#include "manager/observability/token_review.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDocumentCounts{500};
constexpr int kNotModified = 304;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kNotAllowed = 405;
constexpr char kDocumentPath[] = "/node.json";
constexpr std::string_view kWhyPath = "/why/";
constexpr char kJson[] = "application/json";

constexpr HttpRules kRules{.after_answer = HttpRules::AfterAnswer::kKeepOpen};

struct PageFile {
  std::string_view path;
  std::string_view name;
  const char* type;
};
constexpr PageFile kFiles[] = {{"/", "page.html", "text/html; charset=utf-8"},
                               {"/page.css", "page.css", "text/css; charset=utf-8"},
                               {"/page.js", "page.js", "text/javascript; charset=utf-8"},
                               {"/icon.svg", "icon.svg", "image/svg+xml"}};

const PageFile* FindFile(std::string_view path) {
  for (const PageFile& file : kFiles) {
    if (file.path == path) {
      return &file;
    }
  }
  return nullptr;
}

/// The page shows foreign names and sentences. Nothing in them may become a script, a form or a
/// request. Source: Content Security Policy Level 3, Trusted Types.
HttpAnswer Secured(HttpAnswer answer) {
  if (answer.status == kNotModified) {
    return answer;  // sent every second
  }
  answer.more_headers.insert(
      answer.more_headers.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cache-Control", "no-cache"}});
  return answer;
}

}  // namespace

struct PageServer::Impl {
  explicit Impl(Sources page_sources) : sources(std::move(page_sources)) {}

  HttpAnswer Answer(const HttpQuestion& question) {
    if (question.method != "GET") {
      return {kNotAllowed, "only GET is served here\n"};
    }
    if (!guard.security.gate && !IsLocalName(NameInHost(question.host))) {
      Reject(Rejected::kWebPage, fmt::format("cannot serve the page for the host name {}; use "
                                             "localhost or the IP address",
                                             Quoted(question.host)));
      return {kForbidden,
              "cannot serve the page for that host name; use localhost or the IP address\n"};
    }
    if (const PageFile* file = FindFile(question.target); file != nullptr) {
      return {.body = std::string(FindPageFile(file->name)), .type = file->type};
    }
    if (question.target == kDocumentPath) {
      return AnswerDocument(question.if_none_match);
    }
    if (question.target.starts_with(kWhyPath)) {
      return AnswerWhy(question.target.substr(kWhyPath.size()));
    }
    return {kNotFound, "try /\n"};
  }

  HttpAnswer AnswerDocument(const std::string& known) {
    Refresh();
    const std::string tag = fmt::format("\"{:x}-{}\"", started, version);
    HttpAnswer answer{.type = kJson, .more_headers = {{"ETag", tag}}};
    if (known == tag) {
      answer.status = kNotModified;
    } else {
      answer.body = document;
    }
    return answer;
  }

  HttpAnswer AnswerWhy(const std::string& id) {
    Refresh();
    const auto found = decisions.why.find(id);
    return found == decisions.why.end()
               ? HttpAnswer{kNotFound, "qrmd has no decision about that container\n"}
               : HttpAnswer{.body = found->second, .type = kJson};
  }

  /// Rebuilds the document if it is older than kDocumentCounts.
  void Refresh() {
    const steady_clock::time_point now = steady_clock::now();
    if (!document.empty() && now - made < kDocumentCounts) {
      return;
    }
    made = now;
    const uint64_t count = sources.node.DecisionCount();
    if (decision_count != count) {
      decisions = ReadForPage(sources.node.Decisions());
      decision_count = count;
    }
    const auto state = sources.snapshots.Load();
    std::string fresh =
        PageDocument({.node_name = sources.node_name,
                      .state = *state,
                      .machine = sources.machine,
                      .status = sources.node.Status(),
                      .plugins = sources.plugins.List(),
                      .latest_decisions = decisions.latest,
                      .remarks_of =
                          [this](const checkpoint::PodRecord& pod, const std::string& name) {
                            return sources.node.RemarksOf(pod, name);
                          },
                      .unplaced = sources.node.Unplaced()});
    if (fresh != document) {
      document = std::move(fresh);
      ++version;
    }
  }

  const Sources sources;
  // Part of the ETags, so that those of an earlier process do not match.
  const int64_t started = std::chrono::system_clock::now().time_since_epoch().count();

  // Used only on the server's thread.
  std::string document;
  uint64_t version = 0;
  steady_clock::time_point made;
  PageDecisions decisions;
  std::optional<uint64_t> decision_count;

  boost::asio::io_context io;
  HttpGuard guard;
  HttpListener listener{io,
                        [this](const HttpQuestion& question, const HttpReply& reply) {
                          reply(Secured(Answer(question)));
                        },
                        kRules};
  std::thread thread;
};

PageServer::PageServer(Sources sources) : impl_(std::make_unique<Impl>(std::move(sources))) {}

PageServer::~PageServer() {
  Stop();
}

Status PageServer::Start(const HttpOptions& options) {
  if (options.page_address.empty()) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const HttpAddress address, ParseHttpAddress(options.page_address));
  QRM_ASSIGN_OR_RETURN(impl_->guard,
                       MakeGuard(impl_->io, options, {"this node's page", kDocumentPath}));
  // The files contain no data of the node, and the page asks the user for a token.
  impl_->guard.security.is_open = [](std::string_view path) { return FindFile(path) != nullptr; };
  QRM_RETURN_IF_ERROR(impl_->listener.Listen(address, "page-address", impl_->guard.security));
  impl_->thread = std::thread([this] { impl_->io.run(); });
  return OkStatus();
}

void PageServer::Stop() {
  if (impl_->thread.joinable()) {
    impl_->io.stop();
    impl_->thread.join();
    impl_->listener.Close();
  }
}

int PageServer::port() const {
  return impl_->listener.port();
}

}  // namespace qrm::manager
