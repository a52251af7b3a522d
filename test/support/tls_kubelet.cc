// Kubelet's answers.
#include "test/support/tls_kubelet.h"

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "test/support/tls_server.h"

namespace qrm::test {

struct TlsKubelet::Impl {
  TlsServer::Answer Answer(const TlsServer::Request& request) {
    const MutexLock lock(mutex);
    changed.Wait(mutex, [this]() QRM_REQUIRES(mutex) { return !held; });
    ++answered;
    if (request.authorization != "Bearer " + token) {
      return {.status = 401, .body = ""};
    }
    if (request.path.rfind("/containerLogs/", 0) == 0) {
      return {.status = debugging ? all ? 404U : 403U : 405U, .body = ""};
    }
    if (request.path != "/pods") {
      return {.status = 404, .body = ""};
    }
    return {.status = static_cast<unsigned>(status), .body = body};
  }

  Mutex mutex;
  CondVar changed;
  bool held QRM_GUARDED_BY(mutex) = false;
  std::string token QRM_GUARDED_BY(mutex);
  bool all QRM_GUARDED_BY(mutex) = false;
  bool debugging QRM_GUARDED_BY(mutex) = true;
  int status QRM_GUARDED_BY(mutex) = 200;
  std::string body QRM_GUARDED_BY(mutex);
  int answered QRM_GUARDED_BY(mutex) = 0;
};

TlsKubelet::TlsKubelet()
    : impl_(std::make_unique<Impl>()),
      server_(std::make_unique<TlsServer>([impl = impl_.get()](const TlsServer::Request& request) {
        return impl->Answer(request);
      })) {}
TlsKubelet::~TlsKubelet() {
  Release();
}

int TlsKubelet::port() const {
  return server_->port();
}

const std::string& TlsKubelet::certificate() const {
  return server_->certificate();
}

void TlsKubelet::SetToken(const std::string& token) {
  const MutexLock lock(impl_->mutex);
  impl_->token = token;
}

void TlsKubelet::AllowAll() {
  const MutexLock lock(impl_->mutex);
  impl_->all = true;
}

void TlsKubelet::DisableDebugging() {
  const MutexLock lock(impl_->mutex);
  impl_->debugging = false;
}

void TlsKubelet::SetAnswer(int status, const std::string& body) {
  const MutexLock lock(impl_->mutex);
  impl_->status = status;
  impl_->body = body;
}

void TlsKubelet::Hold() {
  const MutexLock lock(impl_->mutex);
  impl_->held = true;
}

void TlsKubelet::Release() {
  const MutexLock lock(impl_->mutex);
  impl_->held = false;
  impl_->changed.NotifyAll();
}

int TlsKubelet::answered() const {
  const MutexLock lock(impl_->mutex);
  return impl_->answered;
}

}  // namespace qrm::test
