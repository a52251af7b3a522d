// Translates the calls that the registry makes to every plugin.
#include "manager/registry/calls/driver_client.h"

#include <string_view>
#include <utility>

#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {
namespace {

constexpr std::string_view kService = "/cci.v1alpha1.CCIDriver/";

using OptionsResult = calls::CallTo<calls::GetOptions>::Result;

/// A driver need not serve the options call; it is then called before each start.
OptionsResult OrDefault(OptionsResult result) {
  if (result.value.status().code() == StatusCode::kUnimplemented) {
    return {PluginOptions{.pre_start_required = true}, calls::Blame::kNobody};
  }
  return result;
}

}  // namespace

void DriverClient::Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) {
  if (std::string_view(call->method().path).starts_with(kService)) {
    socket_.Start(call, deadline);
    return;
  }
  if (const auto options = std::dynamic_pointer_cast<calls::CallTo<calls::GetOptions>>(call);
      options != nullptr) {
    socket_.Ask<calls::ComputeOptions>({}, deadline, [options](OptionsResult result) {
      options->End(OrDefault(std::move(result)));
    });
    return;
  }
  call->Fail(Status(StatusCode::kUnimplemented, "it is a compute driver, which has no such call"),
             calls::Blame::kRefusal);
}

}  // namespace qrm::manager
