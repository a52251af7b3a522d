// The CRI socket of the model's runtime.
#pragma once

#include <memory>
#include <string>

namespace qrm::test {

class ModelRuntime;

/// Answers the CRI calls that qrmd makes from the runtime's tables, sandboxes that have stopped and
/// containers that have ended among them.
///
/// Threads: the calls come on gRPC's.
class ModelCri {
 public:
  /// Serves on `socket` from construction to destruction; `runtime` outlives it.
  ModelCri(const std::string& socket, ModelRuntime& runtime);
  ~ModelCri();
  ModelCri(const ModelCri&) = delete;
  ModelCri& operator=(const ModelCri&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
