// The control API as qrmctl and qrmd of different releases use it with each other.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "api/proto/qrm/v1/classes.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/qrm/v1/permissions.pb.h"
#include "api/proto/qrm/v1/policy.pb.h"

namespace qrm::control_api_test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

/// Each release adds its calls and fields.
constexpr char kReleased[] = "test/vectors/control_api.txt";

void AddCalls(const ServiceDescriptor& service, std::set<std::string>& lines) {
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    lines.insert(fmt::format("{}/{}({}) {}", service.full_name(), method.name(),
                             method.input_type()->name(), method.output_type()->name()));
  }
}

void AddFields(const Descriptor& message, std::set<std::string>& lines) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string type =
        field.message_type() != nullptr ? field.message_type()->full_name() : field.type_name();
    lines.insert(fmt::format("{}.{} = {}: {}{}", message.full_name(), field.name(), field.number(),
                             field.is_repeated() ? "repeated " : "", type));
  }
}

std::set<std::string> CallsAndFields() {
  std::set<std::string> lines;
  for (const FileDescriptor* file :
       {v1::GetStatusRequest::descriptor()->file(), v1::ListClassesRequest::descriptor()->file(),
        v1::GetPermissionsRequest::descriptor()->file(),
        v1::GetPolicyRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      AddCalls(*file->service(i), lines);
    }
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor& message = *file->message_type(i);
      AddFields(message, lines);
      for (int j = 0; j < message.nested_type_count(); ++j) {  // maps
        AddFields(*message.nested_type(j), lines);
      }
    }
  }
  return lines;
}

std::set<std::string> Released() {
  std::ifstream file(kReleased);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.insert(line);
  }
  return lines;
}

/// The lines of `those` that are not among `others`.
std::string Without(const std::set<std::string>& those, const std::set<std::string>& others) {
  std::vector<std::string> difference;
  std::set_difference(those.begin(), those.end(), others.begin(), others.end(),
                      std::back_inserter(difference));
  return fmt::format("{}", fmt::join(difference, "\n"));
}

TEST(ControlApiTest, KeepsEveryCallAndFieldOfEarlierReleases) {
  EXPECT_EQ(Without(Released(), CallsAndFields()), "")
      << "an earlier qrmctl or qrmd uses them: add others, and keep these";
}

TEST(ControlApiTest, ListsItsCallsAndFields) {
  EXPECT_EQ(Without(CallsAndFields(), Released()), "") << "add these lines to " << kReleased;
}

}  // namespace
}  // namespace qrm::control_api_test
