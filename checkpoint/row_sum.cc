// Hashes the values of a row.
#include "checkpoint/row_sum.h"

#include <cstring>
#include <string_view>
#include <vector>

namespace qrm::checkpoint {

void RowSum::AddWord(uint64_t word) {
  constexpr uint64_t kPrime = 0x100000001b3;
  hash_ = (hash_ ^ word) * kPrime;
  hash_ ^= hash_ >> 32;  // a multiplication carries upward only
}

void RowSum::Add(const SqliteValue& value) {
  AddWord(static_cast<uint64_t>(value.kind()));
  switch (value.kind()) {
    case SqliteValue::Kind::kNull:
      break;
    case SqliteValue::Kind::kInteger:
      AddWord(static_cast<uint64_t>(value.integer()));
      break;
    case SqliteValue::Kind::kReal: {
      uint64_t bits = 0;
      const double real = value.real() == 0 ? 0 : value.real();  // SQLite has one zero
      std::memcpy(&bits, &real, sizeof bits);
      AddWord(bits);
      break;
    }
    case SqliteValue::Kind::kText:
    case SqliteValue::Kind::kBlob: {
      std::string_view text = value.text();
      AddWord(text.size());
      for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
        uint64_t word = 0;
        std::memcpy(&word, text.data(), sizeof word);
        AddWord(word);
      }
      uint64_t tail = 0;
      if (!text.empty()) {  // an empty view may have no address
        std::memcpy(&tail, text.data(), text.size());
      }
      AddWord(tail);
      break;
    }
  }
}

Status RunSummed(SqliteStatement& statement, SqliteStatement::Values values,
                 SqliteStatement::Values rest) {
  RowSum sum;
  std::vector<SqliteValue> row;
  row.reserve(values.size() + 1 + rest.size());
  for (const SqliteValue& value : values) {
    sum.Add(value);
    row.push_back(value);
  }
  row.emplace_back(sum.value());
  row.insert(row.end(), rest.begin(), rest.end());
  return statement.Run(row);
}

}  // namespace qrm::checkpoint
