// Writes the journal as JSON, replacing the whole file each time.
#include "plugins/host/journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "checkpoint/sqlite/durable_file.h"

namespace qrm::host {
namespace {

using Json = nlohmann::json;

Json ToJson(const JournalRecord& record) {
  return {{"path", record.path},         {"form", static_cast<int>(record.form)},
          {"original", record.original}, {"ours", record.ours},
          {"claims", record.claims},     {"settled", record.is_settled}};
}

JournalRecord FromJson(const Json& json) {
  return {.path = json.at("path"),
          .form = static_cast<ClaimForm>(json.at("form").get<int>()),
          .original = json.at("original"),
          .ours = json.at("ours"),
          .claims = json.at("claims"),
          .is_settled = json.at("settled")};
}

}  // namespace

StatusOr<JournalRecords> Journal::Load(const std::string& boot) const {
  std::ifstream file(path_);
  if (!file) {
    return JournalRecords();
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    const Json json = Json::parse(text);
    JournalRecords records;
    if (json.at("boot") != boot) {
      return records;
    }
    for (const Json& record : json.at("records")) {
      records.push_back(FromJson(record));
    }
    return records;
  } catch (const Json::exception& error) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read {}, the journal of the machine's original values: {}; move it "
                  "aside: the values it lists then stay changed until a reboot",
                  path_, error.what());
  }
}

Status Journal::Save(const std::string& boot, const JournalRecords& records) const {
  Json json = {{"boot", boot}, {"records", Json::array()}};
  for (const JournalRecord& record : records) {
    json["records"].push_back(ToJson(record));
  }
  QRM_RETURN_IF_ERROR(checkpoint::MakeDurableDirectory(checkpoint::DirectoryOf(path_)));
  return checkpoint::WriteFileDurably(
      path_, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace qrm::host
