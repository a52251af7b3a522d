// Names of containers in messages.
#include "plugins/rules/select.h"

#include <gtest/gtest.h>

namespace qrm::rules::select_test {
namespace {

TEST(NameOfTest, MovesNoCursor) {
  const ContainerRequest request{
      .key = {"uid-web", "c\x1b[2J"}, .pod_namespace = "default", .pod_name = "web\n"};
  EXPECT_EQ(NameOf(request), "container c\\x1b[2J of pod default/web\\n");
}

}  // namespace
}  // namespace qrm::rules::select_test
