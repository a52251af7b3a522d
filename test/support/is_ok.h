// An assertion that shows why a Status is not OK.
#pragma once

#include <gtest/gtest.h>

#include "api/base/status.h"

namespace qrm::test {

/// For EXPECT_TRUE and ASSERT_TRUE, which then print the message.
inline testing::AssertionResult IsOk(const Status& status) {
  return status.ok() ? testing::AssertionSuccess()
                     : testing::AssertionFailure() << MessageOf(status);
}

}  // namespace qrm::test
