// A certificate for 127.0.0.1 that is made for a test.
#pragma once

#include <string>

namespace qrm::test {

/// In PEM.
struct TlsIdentity {
  std::string certificate;
  std::string key;
};

TlsIdentity MakeTlsIdentity();

}  // namespace qrm::test
