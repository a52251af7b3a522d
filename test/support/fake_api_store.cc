// Objects as JSON, as they were sent.
#include "test/support/fake_api_store.h"

#include <sstream>
#include <utility>

namespace qrm::test {
namespace {

using nlohmann::json;

std::vector<std::string> Split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

ApiTarget ParseApiTarget(const std::string& text) {
  ApiTarget target;
  const auto mark = text.find('?');
  if (mark != std::string::npos) {
    for (const std::string& pair : Split(text.substr(mark + 1), '&')) {
      const auto equals = pair.find('=');
      target.query[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  }
  std::vector<std::string> parts =
      Split(text.substr(1, mark == std::string::npos ? mark : mark - 1), '/');
  auto part = parts.begin();
  for (std::size_t i = 0; i < (parts[0] == "api" ? 2U : 3U) && part != parts.end(); ++i) {
    target.collection += "/" + *part++;
  }
  if (parts.end() - part > 2 && *part == "namespaces") {
    target.space = *++part;
    ++part;
  }
  target.collection += "/" + (part == parts.end() ? std::string() : *part++);
  target.name = part == parts.end() ? std::string() : *part++;
  target.subresource = part == parts.end() ? std::string() : *part;
  return target;
}

ApiAnswer FailedAnswer(unsigned status, const std::string& message) {
  return {status, {{"kind", "Status"}, {"message", message}, {"code", status}}};
}

std::string KeyOfObject(const json& object) {
  const json& meta = object.at("metadata");
  const std::string name = meta.at("name");
  return meta.contains("namespace") ? meta["namespace"].get<std::string>() + "/" + name : name;
}

ApiAnswer FakeApiStore::Carry(const std::string& method, const ApiTarget& target,
                              const std::string& body) {
  const json sent = body.empty() ? json() : json::parse(body);
  Collection& collection = collections_[target.collection];
  const auto found = collection.objects.find(target.key());
  const bool exists = !target.name.empty() && found != collection.objects.end();
  if (method == "GET" && target.name.empty()) {
    return List(target, collection);
  }
  if (method == "POST" && target.subresource.empty()) {
    return collection.objects.contains(KeyOfObject(sent)) ? FailedAnswer(409, "already exists")
                                                          : Store(target.collection, sent, "ADDED");
  }
  if (method == "PATCH" && !exists && target.query.contains("fieldManager")) {
    return Store(target.collection, sent, "ADDED");
  }
  if (!exists) {
    return FailedAnswer(404, "\"" + target.name + "\" not found");
  }
  if (target.subresource == "binding") {
    return Bind(target, found->second, sent);
  }
  if (method == "DELETE") {
    return Store(target.collection, json(found->second), "DELETED");
  }
  if (method == "PUT") {
    const bool newest =
        sent.value(json::json_pointer("/metadata/resourceVersion"), std::string()) ==
        found->second["metadata"]["resourceVersion"].get<std::string>();
    return newest ? Store(target.collection, sent, "MODIFIED")
                  : FailedAnswer(409, "object was modified");
  }
  if (method == "PATCH") {
    json patched = found->second;
    patched.merge_patch(sent);
    return Store(target.collection, patched, "MODIFIED");
  }
  return {200, found->second};
}

ApiAnswer FakeApiStore::Bind(const ApiTarget& target, json pod, const json& binding) {
  const json& meta = binding["metadata"];
  if (meta.value("uid", std::string()) != pod["metadata"].value("uid", std::string())) {
    return FailedAnswer(409, "the UID in the precondition does not match");
  }
  const std::string node = pod.value(json::json_pointer("/spec/nodeName"), std::string());
  if (!node.empty() || pod["metadata"].contains("deletionTimestamp")) {
    return FailedAnswer(
        409, node.empty() ? "pod is being deleted"
                          : "pod " + target.name + " is already assigned to node \"" + node + "\"");
  }
  pod["spec"]["nodeName"] = binding["target"]["name"];
  for (const auto& [key, value] : meta["annotations"].items()) {
    pod["metadata"]["annotations"][key] = value;
  }
  Store(target.collection, pod, "MODIFIED");
  return {201, {{"kind", "Status"}, {"status", "Success"}}};
}

ApiAnswer FakeApiStore::Store(const std::string& path, json object, const std::string& type) {
  Collection& collection = collections_[path];
  object["metadata"]["resourceVersion"] = std::to_string(++reached_);
  const std::string key = KeyOfObject(object);
  if (type == "DELETED") {
    collection.objects.erase(key);
  } else {
    collection.objects[key] = object;
  }
  collection.history.push_back({reached_, type, object});
  return {type == "ADDED" ? 201U : 200U, std::move(object)};
}

ApiAnswer FakeApiStore::List(const ApiTarget& target, const Collection& collection) const {
  const auto number = [&](const char* key, std::size_t fallback) {
    const auto found = target.query.find(key);
    return found == target.query.end() ? fallback : std::stoul(found->second);
  };
  const std::size_t limit = number("limit", SIZE_MAX);
  std::size_t skip = number("continue", 0);
  json items = json::array();
  json meta = {{"resourceVersion", std::to_string(reached_)}};
  for (const auto& [key, object] : collection.objects) {
    if (skip > 0) {
      --skip;
    } else if (items.size() == limit) {
      meta["continue"] = std::to_string(number("continue", 0) + limit);
      break;
    } else {
      items.push_back(object);
    }
  }
  return {200, {{"kind", "List"}, {"metadata", meta}, {"items", items}}};
}

void FakeApiStore::DropHistory() {
  for (auto& [path, collection] : collections_) {
    collection.history.clear();
  }
}

void FakeApiStore::RestoreTo(uint64_t version) {
  for (auto& [path, collection] : collections_) {
    std::erase_if(collection.history, [&](const Event& event) { return event.version > version; });
    collection.objects.clear();
    for (const Event& event : collection.history) {
      if (event.type == "DELETED") {
        collection.objects.erase(KeyOfObject(event.object));
      } else {
        collection.objects[KeyOfObject(event.object)] = event.object;
      }
    }
  }
  reached_ = version;
}

}  // namespace qrm::test
