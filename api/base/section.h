// One mapping of a YAML file, read key by key, with errors that name file, line, key and remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/foreign_yaml.h"
#include "api/base/status.h"

namespace qrm::config {

/// A mapping at one place of a configuration file. A missing key reads as the fallback.
///
/// Errors: every reader returns kInvalidArgument as `cannot read FILE:LINE: KEY is 'VALUE', ...;
/// ...`. Threads: one at a time (yaml-cpp nodes are shared and not locked).
class Section {
 public:
  /// The whole file as one mapping; an empty file is an empty mapping. Errors: kNotFound when it
  /// cannot be opened, kInvalidArgument when it is not a YAML mapping.
  static StatusOr<Section> Load(const std::string& path);

  /// `text` as if it were the content of `file`. Errors: also those of ParseYaml.
  static StatusOr<Section> Parse(const std::string& text, const std::string& file,
                                 const YamlBounds& bounds = {});

  /// `node` of a file that was read elsewhere, with its `path` in the file ("plugins.cpu").
  /// Errors: kInvalidArgument when it is not a mapping; a null node is an empty mapping.
  static StatusOr<Section> FromNode(const YAML::Node& node, std::string file, std::string path);

  bool Has(std::string_view key) const;

  /// A copy in which AllowKeys also accepts `keys`, which are read elsewhere.
  Section Without(std::initializer_list<std::string_view> keys) const;

  /// OK when the mapping has no keys but `known`.
  Status AllowKeys(std::vector<std::string_view> known) const;

  StatusOr<std::string> Text(std::string_view key, std::string fallback) const;
  StatusOr<bool> Flag(std::string_view key, bool fallback) const;
  /// The position of the value among `words`; `fallback` is one too.
  StatusOr<std::size_t> Choice(std::string_view key, std::size_t fallback,
                               std::initializer_list<std::string_view> words) const;
  /// A whole number from 0 to 2^53.
  StatusOr<uint64_t> Number(std::string_view key, uint64_t fallback) const;
  /// A size as Kubernetes writes it: `512Mi`, `20G`, `524288000`.
  StatusOr<uint64_t> Bytes(std::string_view key, uint64_t fallback) const;
  /// What T::Parse reads, which takes an empty text when the key is missing. For the error, `what`
  /// names the form ("CPU list") and `example` is one.
  template <typename T>
  StatusOr<T> Parsed(std::string_view key, std::string_view what, std::string_view example) const {
    QRM_ASSIGN_OR_RETURN(const std::string text, Text(key, ""));
    StatusOr<T> value = T::Parse(text);
    return value.ok() ? value : NotParsed(key, text, what, example);
  }
  /// A sequence of words; empty when missing.
  StatusOr<std::vector<std::string>> Words(std::string_view key) const;
  /// The same, in which a single word may stand for a list of one.
  StatusOr<std::vector<std::string>> WordOrWords(std::string_view key) const;

  /// The mapping under `key`; an empty one when missing.
  StatusOr<Section> Child(std::string_view key) const;
  /// The mappings under each key of the mapping `key`, in the order of the file. A null value is an
  /// empty mapping. Errors: also kInvalidArgument for a key that a terminal cannot show.
  StatusOr<std::vector<std::pair<std::string, Section>>> Children(std::string_view key) const;
  /// The mappings of the sequence `key`.
  StatusOr<std::vector<Section>> Items(std::string_view key) const;
  /// The keys of this mapping, in the order of the file.
  std::vector<std::string> Keys() const;

  /// The mapping on one line: `{a: 1, b: [x, y]}`.
  std::string OneLine() const;

  /// True when `key` holds a plain value, neither mapping nor sequence.
  bool IsScalar(std::string_view key) const;

  /// `cannot read FILE:LINE: KEY CAUSE; REMEDY`, for checks that span keys.
  Status Error(std::string_view key, std::string_view cause, std::string_view remedy) const;

  const std::string& file() const { return file_; }
  /// "FILE:LINE", where the mapping begins.
  std::string Place() const;

 private:
  Section(const YAML::Node& node, std::string file, std::string path);

  Status NotParsed(std::string_view key, const std::string& text, std::string_view what,
                   std::string_view example) const;
  std::optional<YAML::Node> Find(std::string_view key) const;
  StatusOr<std::optional<std::string>> Scalar(std::string_view key) const;
  std::string PathOf(std::string_view key) const;

  std::shared_ptr<const YAML::Node> node_;
  std::string file_;
  std::string path_;
  std::vector<std::string> read_elsewhere_;
};

/// Reads `512Mi`, `1.5G`, `1000`. Errors: kInvalidArgument naming the forms. Source: Kubernetes API
/// conventions, "resource quantities".
StatusOr<uint64_t> ParseBytes(std::string_view text);

}  // namespace qrm::config
