// Counts what the library's parser finds, and lets the library build only what is within bounds.
#include "api/base/foreign_yaml.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/rejected.h"

namespace qrm::config {
namespace {

using std::chrono::steady_clock;
using Kind = YAML::EmitterStyle::value;

/// Passes through the library, which has no other way to be ended. Its message has the remedy.
struct BeyondBounds : YAML::Exception {
  using YAML::Exception::Exception;
};

/// The size of a node, aliases in it written out.
struct Size {
  std::size_t nodes = 1;
  std::size_t bytes = 0;  ///< of its scalars
  std::size_t levels = 0;
};

class BoundsCheck final : public YAML::EventHandler {
 public:
  explicit BoundsCheck(const YamlBounds& bounds)
      : bounds_(bounds), end_(steady_clock::now() + bounds.time) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // The library begins documents without end at what can begin none.
    if (mark.pos == begin_) {
      throw YAML::ParserException(mark, "no value begins here");
    }
    begin_ = mark.pos;
    anchored_.clear();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(mark, anchor, {}); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    Add(mark, anchor, {.bytes = value.size()});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (bounds_.aliases == YamlAliases::kRefused) {
      throw BeyondBounds(mark, "it has an alias; write out what it stands for");
    }
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      throw BeyondBounds(mark, "an anchor refers to itself; write out what it stands for");
    }
    Add(mark, 0, found->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       Kind /*style*/) override {
    Open(mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  Kind /*style*/) override {
    Open(mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    YAML::anchor_t anchor;
    Size size;
  };

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, const Size& size) {
    total_.nodes += size.nodes;
    total_.bytes += size.bytes;
    Check(mark, open_.size() + size.levels);
    Count(anchor, size);
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    open_.push_back({.anchor = anchor, .size = {.levels = 1}});
    ++total_.nodes;
    Check(mark, open_.size());
  }

  void Close() {
    const OpenNode closed = open_.back();
    open_.pop_back();
    Count(closed.anchor, closed.size);
  }

  /// Remembers a node that is complete, and adds it to the one that it is in.
  void Count(YAML::anchor_t anchor, const Size& size) {
    if (anchor != 0) {
      anchored_[anchor] = size;
    }
    if (!open_.empty()) {
      Size& outer = open_.back().size;
      outer.nodes += size.nodes;
      outer.bytes += size.bytes;
      outer.levels = std::max(outer.levels, size.levels + 1);
    }
  }

  void Check(const YAML::Mark& mark, std::size_t levels) const {
    const auto refuse_beyond = [&](std::size_t most, std::string_view what) {
      throw BeyondBounds(
          mark, fmt::format("it has more than {} {}, aliases written out; write less", most, what));
    };
    if (levels > bounds_.depth) {
      refuse_beyond(bounds_.depth, "levels");
    }
    if (total_.nodes > bounds_.nodes) {
      refuse_beyond(bounds_.nodes, "nodes");
    }
    if (total_.bytes > bounds_.bytes) {
      refuse_beyond(bounds_.bytes, "bytes");
    }
    if (steady_clock::now() > end_) {
      throw BeyondBounds(
          mark, fmt::format("it takes more than {} ms to read; write less", bounds_.time.count()));
    }
  }

  const YamlBounds& bounds_;
  const steady_clock::time_point end_;
  int begin_ = -1;  // of the document
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Size> anchored_;  // of this document, those that are complete
  Size total_{.nodes = 0};
};

/// The number of the first line that a tab indents; 0 for none. YAML calls it many things.
int FirstIndentedByTab(const std::string& text) {
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    if (const auto begin = line.find_first_not_of(' ');
        begin != std::string::npos && line[begin] == '\t') {
      return number;
    }
  }
  return 0;
}

/// What lists and mappings on one line are made of. The library takes all of such a list apart, at
/// 200 bytes for each of them, before it reports the first.
std::size_t CountMarks(const std::string& text) {
  constexpr std::string_view kMarks = "[]{},";
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [&](char c) { return kMarks.find(c) != std::string_view::npos; }));
}

void CheckBounds(const std::string& text, const YamlBounds& bounds) {
  BoundsCheck check(bounds);
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(check)) {
  }
}

/// The author of an operator's file learns it from the error.
Status OutOfBounds(const Status& problem, const YamlBounds& bounds) {
  if (bounds.aliases == YamlAliases::kRefused) {
    Reject(Rejected::kYaml, MessageOf(problem));
  }
  return problem;
}

}  // namespace

StatusOr<std::vector<YAML::Node>> ParseYamlDocuments(const std::string& text,
                                                     const std::string& file,
                                                     const YamlBounds& bounds) {
  if (text.size() > bounds.bytes) {
    return OutOfBounds(
        Errorf(StatusCode::kInvalidArgument,
               "cannot read {}: it has more than {} bytes; write less", file, bounds.bytes),
        bounds);
  }
  if (CountMarks(text) > bounds.nodes) {
    return OutOfBounds(Errorf(StatusCode::kInvalidArgument,
                              "cannot read {}: it has more than {} brackets and commas; write less",
                              file, bounds.nodes),
                       bounds);
  }
  try {
    CheckBounds(text, bounds);
    return YAML::LoadAll(text);
  } catch (const BeyondBounds& error) {
    return OutOfBounds(Errorf(StatusCode::kInvalidArgument, "cannot read {}:{}: {}", file,
                              error.mark.line + 1, error.msg),
                       bounds);
  } catch (const YAML::Exception& error) {
    if (const int line = FirstIndentedByTab(text); line > 0) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot read {}:{}: the line is indented by a tab; indent by spaces", file,
                    line);
    }
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}:{}: {}; write valid YAML", file,
                  error.mark.line + 1, Quoted(error.msg));
  }
}

StatusOr<YAML::Node> ParseYaml(const std::string& text, const std::string& file,
                               const YamlBounds& bounds) {
  QRM_ASSIGN_OR_RETURN(const std::vector<YAML::Node> documents,
                       ParseYamlDocuments(text, file, bounds));
  return documents.empty() ? YAML::Node() : documents.front();
}

}  // namespace qrm::config
