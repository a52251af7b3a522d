// Defines the calls of class types: their messages, service and checks.
#include "plugins/sdk/calls/class_calls.h"

#include <utility>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/class_plugin.pb.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/call_codec.h"
#include "plugins/sdk/class_provider.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::calls {
namespace {

using sdk::ClassInfo;
using sdk::ClassLevel;
using sdk::ClassOptions;
using sdk::ClassProvider;
using sdk::ClassTarget;
using sdk::PluginDriver;

/// Calls `question` with the class type of `driver`.
template <typename Question>
auto AskType(PluginDriver& driver, const char* function, const Question& question) {
  return driver.AskAs<ClassProvider>(
      function,
      "it offers no classes; remove it from class-types, or start the plugin that offers them",
      question);
}

v1::ClassTarget ToWire(const ClassTarget& target) {
  v1::ClassTarget wire;
  wire.set_pod_uid(target.key.pod_uid);
  wire.set_container(target.key.container);
  wire.set_runtime_id(target.runtime_id);
  wire.set_cgroups_path(target.cgroups_path);
  return wire;
}

ClassTarget FromWire(const v1::ClassTarget& wire) {
  return {.key = {wire.pod_uid(), wire.container()},
          .runtime_id = wire.runtime_id(),
          .cgroups_path = wire.cgroups_path()};
}

v1::PluginClass ToWire(const ClassInfo& info, const ClassOptions& options) {
  v1::PluginClass wire;
  wire.set_name(info.name);
  wire.set_definition(info.definition);
  wire.set_problem(info.problem);
  wire.set_capacity(info.capacity);
  wire.set_rdt_class(options.rdt_class);
  wire.mutable_unified()->insert(options.unified.begin(), options.unified.end());
  if (options.oom_score_adj.has_value()) {
    wire.set_oom_score_adj(*options.oom_score_adj);
  }
  return wire;
}

ClassOptions OptionsFromWire(const v1::PluginClass& wire) {
  ClassOptions options{.rdt_class = wire.rdt_class(),
                       .unified = {wire.unified().begin(), wire.unified().end()}};
  if (wire.has_oom_score_adj()) {
    options.oom_score_adj = wire.oom_score_adj();
  }
  return options;
}

/// A class that cannot be resolved gets the error as its problem.
void ResolveClasses(const ClassProvider& type, ClassOffer& offer) {
  for (ClassInfo& info : offer.type.classes) {
    const StatusOr<ClassOptions> options = type.Resolve(info.name);
    if (options.ok()) {
      offer.options[info.name] = *options;
    } else if (info.problem.empty()) {
      info.problem = MessageOf(options.status());
    }
  }
}

Status Wrong(const std::string& what) {
  return Errorf(StatusCode::kInvalidArgument, "its answer breaks the protocol: {}", what);
}

}  // namespace

template <>
struct Codec<RefreshClasses> {
  using Message = v1::RefreshClassesRequest;
  using Response = v1::RefreshClassesResponse;

  static Message ToWire(const RefreshClasses::Request& request) {
    Message message;
    message.mutable_classes_in_use()->Add(request.in_use.begin(), request.in_use.end());
    return message;
  }
  static StatusOr<RefreshClasses::Request> FromWire(const Message& message) {
    return RefreshClasses::Request{
        .in_use = {message.classes_in_use().begin(), message.classes_in_use().end()}};
  }
  static StatusOr<ClassOffer> Serve(PluginDriver& driver, const RefreshClasses::Request& request) {
    return AskType(driver, "Refresh", [&](ClassProvider& type) -> StatusOr<ClassOffer> {
      const Status refreshed = type.Refresh(request.in_use);
      ClassOffer offer{.type = type.List(),
                       .readings = type.Readings(),
                       .error = refreshed.ok() ? "" : MessageOf(refreshed)};
      offer.type.name = driver.resource();
      ResolveClasses(type, offer);
      return offer;
    });
  }
  static Response AnswerToWire(const ClassOffer& offer) {
    Response response;
    response.set_of_pods(offer.type.level == ClassLevel::kPod);
    response.set_immutable(!offer.type.is_mutable);
    response.set_problem(offer.type.problem);
    response.set_repairs(offer.type.repairs);
    response.set_error(offer.error);
    for (const ClassInfo& info : offer.type.classes) {
      const auto options = offer.options.find(info.name);
      *response.add_classes() =
          calls::ToWire(info, options == offer.options.end() ? ClassOptions() : options->second);
    }
    for (const sdk::ClassReading& reading : offer.readings) {
      v1::ClassReading& wire = *response.add_readings();
      wire.set_class_name(reading.class_name);
      wire.set_quantity(reading.quantity);
      wire.set_value(reading.value);
    }
    return response;
  }
  static StatusOr<ClassOffer> AnswerFromWire(const Response& response,
                                             const RefreshClasses::Request& request) {
    ClassOffer offer{
        .type = {.name = request.resource,
                 .level = response.of_pods() ? ClassLevel::kPod : ClassLevel::kContainer,
                 .is_mutable = !response.immutable(),
                 .problem = OneLine(response.problem()),
                 .repairs = response.repairs()},
        .error = OneLine(response.error())};
    for (const v1::PluginClass& wire : response.classes()) {
      offer.type.classes.push_back({.name = wire.name(),
                                    .definition = OneLine(wire.definition()),
                                    .problem = OneLine(wire.problem()),
                                    .capacity = wire.capacity()});
      if (!offer.options.emplace(wire.name(), OptionsFromWire(wire)).second) {
        return Wrong(fmt::format("class {} is listed twice", OneLine(wire.name())));
      }
    }
    for (const v1::ClassReading& wire : response.readings()) {
      offer.readings.push_back(
          {.class_name = wire.class_name(), .quantity = wire.quantity(), .value = wire.value()});
    }
    return offer;
  }
  /// Checks names that qrmd passes to the runtime, to metrics and to operators.
  static Status Check(const ClassOffer& offer, const NumaMask& /*machine_nodes*/) {
    for (const auto& [name, options] : offer.options) {
      if (!sdk::IsClassName(name)) {
        return Wrong(
            fmt::format("'{}' is not a class name; {}", OneLine(name), sdk::kClassNameForm));
      }
      for (const auto& [file, value] : options.unified) {
        if (!sdk::IsClassName(file)) {
          return Wrong(fmt::format("'{}' is not a cgroup file", OneLine(file)));
        }
      }
    }
    for (const sdk::ClassReading& reading : offer.readings) {
      if (!sdk::IsClassName(reading.quantity) || !offer.options.contains(reading.class_name)) {
        return Wrong(fmt::format("'{}' of '{}' is not a reading of a class",
                                 OneLine(reading.quantity), OneLine(reading.class_name)));
      }
    }
    return OkStatus();
  }
};
template class CallTo<RefreshClasses>;

template <>
struct Codec<ApplyClass> {
  using Response = v1::ApplyClassResponse;
  using Message = v1::ApplyClassRequest;

  static Message ToWire(const ApplyClass::Request& request) {
    Message message;
    *message.mutable_target() = calls::ToWire(request.target);
    message.set_from(request.from);
    message.set_to(request.to);
    return message;
  }
  static StatusOr<ApplyClass::Request> FromWire(const Message& message) {
    return ApplyClass::Request{
        .target = calls::FromWire(message.target()), .from = message.from(), .to = message.to()};
  }
  static Status Serve(PluginDriver& driver, const ApplyClass::Request& request) {
    return AskType(driver, "Apply", [&](ClassProvider& type) {
      return type.Apply(request.target, request.from, request.to);
    });
  }
};
template class CallTo<ApplyClass>;

template <>
struct Codec<ReadBackClass> {
  using Message = v1::ReadBackClassRequest;
  using Response = v1::ReadBackClassResponse;

  static Message ToWire(const ReadBackClass::Request& request) {
    Message message;
    *message.mutable_target() = calls::ToWire(request.target);
    message.set_class_name(request.class_name);
    return message;
  }
  static StatusOr<ReadBackClass::Request> FromWire(const Message& message) {
    return ReadBackClass::Request{.target = calls::FromWire(message.target()),
                                  .class_name = message.class_name()};
  }
  static StatusOr<std::string> Serve(PluginDriver& driver, const ReadBackClass::Request& request) {
    return AskType(driver, "ReadBack", [&](ClassProvider& type) {
      return type.ReadBack(request.target, request.class_name);
    });
  }
  static Response AnswerToWire(const std::string& difference) {
    Response response;
    response.set_difference(difference);
    return response;
  }
  static StatusOr<std::string> AnswerFromWire(const Response& response) {
    return OneLine(response.difference());
  }
};
template class CallTo<ReadBackClass>;

template <>
struct Codec<ReleaseClass> {
  using Response = v1::ReleaseClassResponse;
  using Message = v1::ReleaseClassRequest;

  static Message ToWire(const ReleaseClass::Request& request) {
    Message message;
    *message.mutable_target() = calls::ToWire(request.target);
    return message;
  }
  static StatusOr<ReleaseClass::Request> FromWire(const Message& message) {
    return ReleaseClass::Request{.target = calls::FromWire(message.target())};
  }
  static Status Serve(PluginDriver& driver, const ReleaseClass::Request& request) {
    return AskType(driver, "Release", [&](ClassProvider& type) {
      type.Release(request.target);
      return OkStatus();
    });
  }
};
template class CallTo<ReleaseClass>;

std::vector<ServedCall> ClassCalls() {
  return {Served<RefreshClasses>(), Served<ApplyClass>(), Served<ReadBackClass>(),
          Served<ReleaseClass>()};
}

}  // namespace qrm::calls
