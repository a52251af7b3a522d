// A client of a fake API server, on its own loop.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cluster/api_client.h"
#include "test/support/fake_api_server.h"
#include "test/support/loop_thread.h"

namespace qrm::cluster {

class ClientFixture : public testing::Test {
 protected:
  ClientFixture() : ClientFixture(ApiClient::Options()) {}
  explicit ClientFixture(ApiClient::Options options)
      : client_(std::make_unique<ApiClient>(loop_.io(), server_.access(), std::move(options))) {}

  StatusOr<std::string> Call(const ApiRequest& request) {
    std::promise<StatusOr<std::string>> answer;
    loop_.Run([&] {
      client_->Call(request, [&](StatusOr<std::string> got) { answer.set_value(std::move(got)); });
    });
    return answer.get_future().get();
  }

  test::FakeApiServer server_;
  test::LoopThread loop_;
  std::unique_ptr<ApiClient> client_;
};

}  // namespace qrm::cluster
