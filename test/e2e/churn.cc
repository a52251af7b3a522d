// Runs the clients on separate threads.
#include "test/e2e/churn.h"

#include <chrono>
#include <utility>

#include "test/support/await.h"

namespace qrm::test {

Churn::Churn(int clients, Kubelet::Options options, std::function<PodSpec(int number)> spec)
    : options_(std::move(options)), spec_(std::move(spec)) {
  for (int i = 0; i < clients; ++i) {
    clients_.emplace_back([this] { Run(); });
  }
}

Churn::~Churn() {
  Stop();
}

void Churn::Stop() {
  stopping_ = true;
  for (std::thread& client : clients_) {
    if (client.joinable()) {
      client.join();
    }
  }
}

bool Churn::WaitForMore(int count) const {
  const int before = made_;
  return Await([&] { return made_ >= before + count; }, std::chrono::seconds(60));
}

void Churn::Run() {
  Kubelet kubelet(options_);
  while (!stopping_) {
    const int number = next_++;
    const StatusOr<RunningPod> pod = kubelet.RunPod(spec_(number));
    if (!pod.ok()) {
      continue;
    }
    ++made_;
    if (number % 2 == 0) {
      (void)kubelet.RemovePod(*pod);
    }
  }
}

}  // namespace qrm::test
