// The objects of a fake API server, with versions and answers as the real one has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace qrm::test {

struct ApiAnswer {
  unsigned status = 200;
  nlohmann::json body;
  int retry_after = 0;
};

/// The object or collection that a target names.
struct ApiTarget {
  std::string collection;
  std::string space;
  std::string name;
  std::string subresource;
  std::map<std::string, std::string> query;

  std::string key() const { return space.empty() ? name : space + "/" + name; }
};

ApiTarget ParseApiTarget(const std::string& text);
ApiAnswer FailedAnswer(unsigned status, const std::string& message);
/// "NAME" or "NAMESPACE/NAME".
std::string KeyOfObject(const nlohmann::json& object);

/// Threads: one at a time.
class FakeApiStore {
 public:
  struct Event {
    uint64_t version = 0;
    std::string type;
    nlohmann::json object;
  };
  /// Objects of one kind.
  struct Collection {
    std::map<std::string, nlohmann::json> objects;
    std::vector<Event> history;
  };

  /// The operation of a request, and its answer.
  ApiAnswer Carry(const std::string& method, const ApiTarget& target, const std::string& body);
  /// `type` is the event's type: "ADDED", "MODIFIED" or "DELETED".
  ApiAnswer Store(const std::string& path, nlohmann::json object, const std::string& type);
  Collection& Of(const std::string& path) { return collections_[path]; }
  void DropHistory();
  /// Restores the state of that version.
  void RestoreTo(uint64_t version);

  uint64_t reached() const { return reached_; }
  uint64_t Skip() { return ++reached_; }

 private:
  ApiAnswer List(const ApiTarget& target, const Collection& collection) const;
  ApiAnswer Bind(const ApiTarget& target, nlohmann::json pod, const nlohmann::json& binding);

  std::map<std::string, Collection> collections_;
  uint64_t reached_ = 100;
};

}  // namespace qrm::test
