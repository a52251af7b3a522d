// Every `retry`: read the lease, and take it, renew it or wait.
#include "cluster/lease_election.h"

#include <string_view>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "cluster/requests.h"

namespace qrm::cluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr char kGroup[] = "/apis/coordination.k8s.io/v1/namespaces/";

json SpecOf(const json& lease) {
  const json& spec = PartOf(lease, "spec");
  return spec.is_object() ? spec : json::object();
}

int NumberIn(const json& spec, const char* key) {
  const json& number = PartOf(spec, key);
  return number.is_number_integer() ? number.get<int>() : 0;
}

constexpr char kHolder[] = "holderIdentity";

}  // namespace

struct LeaseElection::Impl final : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& io, ApiClient& api, Options lease_options, OnLeading leading)
      : options(std::move(lease_options)),
        client(api),
        on_leading(std::move(leading)),
        timer(io),
        leases(kGroup + PercentEncoded(options.lease_namespace) + "/leases"),
        path(leases + "/" + PercentEncoded(options.name)) {}

  template <typename Next>
  void Call(ApiRequest request, const Next& next) {
    request.timeout = options.renew_deadline / 2;
    client.Call(std::move(request), WhileItRuns(weak_from_this(), next));
  }

  void Try() {
    Call({.path = path}, [](Impl& self, const StatusOr<std::string>& body) {
      if (body.ok()) {
        self.Judge(ParseJson(*body).value_or(json()));
      } else if (body.status().code() == StatusCode::kNotFound) {
        self.TakeMissing();
      } else {
        self.Settle(body.status());
      }
    });
  }

  /// The lease was deleted, or the server was restored from an earlier state: the former holder
  /// leads on until its lease would have expired.
  void TakeMissing() {
    if (steady_clock::now() < others_until) {
      Settle(OkStatus());
    } else {
      Write("POST", json::object());
    }
  }

  void Judge(json lease) {
    const json spec = SpecOf(lease);
    const std::string text = spec.dump();
    if (text != seen) {
      seen = text;
      seen_at = steady_clock::now();
    }
    const std::string holder = TextIn(spec, kHolder);
    if (holder == options.identity || holder.empty()) {
      Write("PUT", std::move(lease));
      return;
    }
    leads_until = 0;  // whatever we wrote before: the lease is another's
    others_until = seen_at + std::chrono::seconds(NumberIn(spec, "leaseDurationSeconds"));
    if (steady_clock::now() >= others_until) {
      Write("PUT", std::move(lease));
    } else {
      Settle(OkStatus());
    }
  }

  /// `lease` is what was read: with its version, the server rejects a write that is too late.
  void Write(const char* method, json lease) {
    const json before = SpecOf(lease);
    const bool renews = TextIn(before, kHolder) == options.identity;
    const std::string now = MicroTime(system_clock::now());
    json& spec = lease["spec"] = before;
    lease["apiVersion"] = "coordination.k8s.io/v1";
    lease["kind"] = "Lease";
    lease["metadata"]["name"] = options.name;
    lease["metadata"]["namespace"] = options.lease_namespace;
    spec["holderIdentity"] = options.identity;
    spec["leaseDurationSeconds"] =
        std::chrono::ceil<std::chrono::seconds>(options.duration).count();
    spec["renewTime"] = now;
    if (!renews) {
      spec["acquireTime"] = now;
      spec["leaseTransitions"] = NumberIn(before, "leaseTransitions") + (before.empty() ? 0 : 1);
    }
    const auto sent = steady_clock::now();
    Call({.method = method,
          .path = std::string_view(method) == "POST" ? leases : path,
          .body = lease.dump()},
         [sent](Impl& self, const StatusOr<std::string>& body) { self.TakeWritten(body, sent); });
  }

  void TakeWritten(const StatusOr<std::string>& body, steady_clock::time_point sent) {
    if (body.ok()) {
      if (!Leads()) {
        log::Info("lease taken", {{"lease", options.name}, {"identity", options.identity}});
        on_leading();
      }
      leads_until = (sent + options.renew_deadline).time_since_epoch().count();
    }
    const bool lost_race = body.status().code() == StatusCode::kAborted;
    Settle(lost_race ? OkStatus() : body.status());
  }

  void Settle(const Status& status) {
    if (!status.ok() && trouble.ok()) {
      log::Warning("lease cannot be renewed",
                   {{"lease", options.name}, {"error", MessageOf(status)}});
    }
    trouble = status;
    timer.expires_after(options.retry);
    timer.async_wait(
        WhileItRuns(weak_from_this(), [](Impl& self, const boost::system::error_code& error) {
          if (!error) {
            self.Try();
          }
        }));
  }

  bool Leads() const { return steady_clock::now().time_since_epoch().count() < leads_until.load(); }

  void Release(const std::function<void()>& done) {
    timer.cancel();
    if (!Leads()) {
      done();
      return;
    }
    leads_until = 0;
    const json patch = {{"spec", {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}}}};
    Call(MergePatchRequest(path, patch), [done](Impl&, const StatusOr<std::string>&) { done(); });
  }

  const Options options;
  ApiClient& client;
  const OnLeading on_leading;
  boost::asio::steady_timer timer;
  const std::string leases;
  const std::string path;
  std::string seen;  // the lease's spec, and when it was first seen so
  steady_clock::time_point seen_at;
  steady_clock::time_point others_until;  // when another's lease, the latest seen, runs out
  Status trouble;
  std::atomic<steady_clock::rep> leads_until{0};
  bool stopped = false;
};

LeaseElection::LeaseElection(boost::asio::io_context& io, ApiClient& client, Options options,
                             OnLeading on_leading)
    : impl_(std::make_shared<Impl>(io, client, std::move(options), std::move(on_leading))) {}

LeaseElection::~LeaseElection() {
  impl_->stopped = true;
}

void LeaseElection::Start() {
  impl_->Try();
}

bool LeaseElection::Leads() const {
  return impl_->Leads();
}

void LeaseElection::Release(const std::function<void()>& done) {
  impl_->Release(done);
}

}  // namespace qrm::cluster
