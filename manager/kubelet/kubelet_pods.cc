// Polls kubelet on a separate thread, one request at a time.
#include "manager/kubelet/kubelet_pods.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <openssl/pem.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/http/https_call.h"
#include "api/http/https_connection.h"
#include "manager/kubelet/pod_list.h"

namespace qrm::manager {
namespace {

/// The log of a container that does not exist. Kubelet answers "forbidden" to a token that may only
/// read pods, and "not found" to one with nodes/proxy. For a path that it does not serve, kubelet
/// would answer "not found" to any token.
/// Source: kubelet's authorization by subresources, GetRequestAttributes.
constexpr char kNoSuchLog[] = "/containerLogs/qrm/may-nodes-proxy/none";

/// `answer` is kubelet's answer for kNoSuchLog. A kubelet with `enableDebuggingHandlers: false`
/// does not have the method, and runs no commands for any token.
Status CheckPower(const StatusOr<std::string>& answer) {
  switch (answer.status().code()) {
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnimplemented:
      return OkStatus();
    case StatusCode::kOk:
    case StatusCode::kNotFound:
      return Errorf(
          StatusCode::kFailedPrecondition,
          "cannot query kubelet for pods: the token may run commands in every container "
          "(nodes/proxy); allow its owner to get nodes/pods only (kubelet 1.33 or newer), "
          "or set kubelet-allow-nodes-proxy: true");
    default:
      return answer.status();
  }
}

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* value) const { Free(value); }
};
void CloseBio(BIO* bio) {
  BIO_free(bio);
}
using BioPtr = std::unique_ptr<BIO, Freed<BIO, CloseBio>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509, X509_free>>;

StatusOr<std::string> FingerprintIn(const std::string& pem_file) {
  const BioPtr bio(BIO_new_file(pem_file.c_str(), "r"));
  const CertificatePtr certificate(
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot read kubelet's certificate from {}: the file has no PEM certificate; set "
                  "kubelet-certificate-file to kubelet's own, such as "
                  "/var/lib/kubelet/pki/kubelet.crt",
                  pem_file);
  }
  return FingerprintOf(certificate.get());
}

/// Absent if the file does not exist.
std::optional<std::string> KeptIn(const std::string& file) {
  std::ifstream stream(file);
  std::string fingerprint;
  if (!stream.is_open()) {
    return std::nullopt;
  }
  stream >> fingerprint;
  return fingerprint;
}

Status Keep(const std::string& fingerprint, const std::string& file) {
  constexpr mode_t kOwnersOnly = 0600;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnersOnly);
  const std::string text = fingerprint + "\n";
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) {
    ::close(fd);
  }
  if (!written) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot save the fingerprint of kubelet's certificate in {}: {}; make its "
                  "directory writable",
                  file, std::generic_category().message(error));
  }
  log::Info("kubelet's certificate is pinned", {{"sha256", fingerprint}, {"file", file}});
  return OkStatus();
}

/// OK for the certificate of `given_file`; without that, for the one of `kept_file`, which is
/// created with `fingerprint` when it is missing. Errors: kFailedPrecondition for another
/// certificate and for files that cannot be read or written, with what to do.
Status CheckPin(const std::string& fingerprint, const PinOptions& pin) {
  if (!pin.given_file.empty()) {
    QRM_ASSIGN_OR_RETURN(const std::string given, FingerprintIn(pin.given_file));
    return given == fingerprint
               ? OkStatus()
               : Errorf(StatusCode::kFailedPrecondition,
                        "cannot trust kubelet: its certificate has sha256 {}, but the one in {} "
                        "has {}; set kubelet-certificate-file to kubelet's own",
                        fingerprint, pin.given_file, given);
  }
  const std::optional<std::string> kept = KeptIn(pin.kept_file);
  if (!kept.has_value()) {
    return Keep(fingerprint, pin.kept_file);
  }
  return *kept == fingerprint
             ? OkStatus()
             : Errorf(StatusCode::kFailedPrecondition,
                      "cannot trust kubelet: its certificate has sha256 {}, but the first one seen "
                      "had {}; if kubelet has a new certificate, remove {}",
                      fingerprint, *kept, pin.kept_file);
}

}  // namespace

struct KubeletPods::Impl {
  explicit Impl(KubeletPodsOptions pods_options) : options(std::move(pods_options)) {
    cache.SetSettled();
    thread = std::thread([this] { io.run(); });
  }
  ~Impl() {
    io.stop();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // All on the thread.
  void Want(const std::string& uid) {
    waiting.insert(uid);
    PollSoon();
  }
  void PollSoon();
  void PollAt(std::chrono::steady_clock::time_point when);
  void Poll();
  void CheckPowerOf(const std::string& token);
  void AskForPods(const std::string& token);
  HttpsRequest RequestWith(const std::string& token) const;
  void Take(const StatusOr<std::string>& body);
  Status Read(const StatusOr<std::string>& body);
  void Release(std::set<std::string>& uids);

  const KubeletPodsOptions options;
  SpecCache cache{options.on_gone};
  std::atomic<bool> failing{false};  // set on the thread
  mutable Mutex mutex;
  std::string problem QRM_GUARDED_BY(mutex);
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      boost::asio::make_work_guard(io)};

  // On the thread only.
  boost::asio::steady_timer timer{io};
  std::set<std::string> waiting;  // for the next poll
  std::set<std::string> asked;    // in the poll under way
  std::string lesser_token;       // the latest token without nodes/proxy
  bool busy = false;              // a poll is under way or the timer runs
  bool complained = false;        // unusable pods have been logged
  std::chrono::milliseconds interval = options.least_interval;
  std::chrono::steady_clock::time_point next_poll;

  std::thread thread;
};

void KubeletPods::Impl::Release(std::set<std::string>& uids) {
  for (const std::string& uid : std::exchange(uids, {})) {
    cache.EndLookup(uid);
  }
}

void KubeletPods::Impl::PollSoon() {
  const bool too_early = std::chrono::steady_clock::now() < next_poll;
  if (too_early && failing) {
    Release(waiting);
    return;
  }
  if (busy) {
    return;
  }
  PollAt(too_early ? next_poll : std::chrono::steady_clock::now());
}

void KubeletPods::Impl::PollAt(std::chrono::steady_clock::time_point when) {
  busy = true;
  timer.expires_at(when);
  timer.async_wait([this](const boost::system::error_code&) { Poll(); });
}

void KubeletPods::Impl::Poll() {
  asked = std::exchange(waiting, {});
  const StatusOr<std::string> token = ReadToken(options.token_file, "kubelet-token-file");
  if (!token.ok()) {
    Take(Annotate(token.status(), "cannot query kubelet for pods"));
    return;
  }
  const bool trusted =
      options.token_power == TokenPower::kAny || token->empty() || *token == lesser_token;
  if (trusted) {
    AskForPods(*token);
  } else {
    CheckPowerOf(*token);
  }
}

void KubeletPods::Impl::CheckPowerOf(const std::string& token) {
  HttpsRequest request = RequestWith(token);
  request.url.target = kNoSuchLog;
  HttpsCall(io, request, [this, token](const StatusOr<std::string>& answer) {
    const Status lesser = CheckPower(answer);
    if (!lesser.ok()) {
      Take(lesser);
      return;
    }
    lesser_token = token;
    AskForPods(token);
  });
}

void KubeletPods::Impl::AskForPods(const std::string& token) {
  HttpsCall(io, RequestWith(token), [this](const StatusOr<std::string>& body) { Take(body); });
}

HttpsRequest KubeletPods::Impl::RequestWith(const std::string& token) const {
  HttpsRequest request{
      .url = options.url,
      .bearer_token = token,
      .ca_file = options.ca_file,
      .timeout = options.timeout,
      .remedies = {.token_is_unknown = "set kubelet-token-file to a token that kubelet accepts",
                   .token_may_not = "allow the token's owner to get nodes/pods",
                   .wrong_address = "set kubelet-url to a kubelet's address",
                   .no_authorities = "set kubelet-ca-file"}};
  if (!options.pin.given_file.empty() || !options.pin.kept_file.empty()) {
    request.trusts = [this](const std::string& fingerprint) {
      return CheckPin(fingerprint, options.pin);
    };
  }
  return request;
}

void KubeletPods::Impl::Take(const StatusOr<std::string>& body) {
  const Status read = Read(body);
  if (!read.ok() && !failing) {
    log::Warning("cannot get kubelet's pods", {{"error", MessageOf(read)}});
  }
  interval = read.ok() ? options.least_interval : std::min(2 * interval, options.most_interval);
  failing = !read.ok();
  {
    const MutexLock lock(mutex);
    problem = MessageOf(read);
  }
  next_poll = std::chrono::steady_clock::now() + interval;
  busy = false;
  Release(asked);
  if (!read.ok()) {
    Release(waiting);
    PollAt(next_poll);  // so that its return is noticed without a new pod
  } else if (!waiting.empty()) {
    PollSoon();
  }
}

Status KubeletPods::Impl::Read(const StatusOr<std::string>& body) {
  QRM_RETURN_IF_ERROR(body.status());
  QRM_ASSIGN_OR_RETURN(PodList list, ParsePodList(*body));
  if (!list.unusable.empty() && !std::exchange(complained, true)) {
    log::Warning("kubelet lists pods that qrmd cannot use",
                 {{"count", list.unusable.size()}, {"error", MessageOf(list.unusable.front())}});
  }
  cache.Replace(std::move(list.specs));
  return OkStatus();
}

KubeletPods::KubeletPods(KubeletPodsOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

KubeletPods::~KubeletPods() = default;

bool KubeletPods::reachable() const {
  return !impl_->failing;
}

std::string KubeletPods::problem() const {
  const MutexLock lock(impl_->mutex);
  return impl_->problem;
}

SpecCache& KubeletPods::cache() const {
  return impl_->cache;
}

void KubeletPods::Prefetch(const std::string& uid) {
  if (impl_->cache.BeginLookup(uid)) {
    boost::asio::post(impl_->io, [impl = impl_.get(), uid] { impl->Want(uid); });
  }
}

}  // namespace qrm::manager
