// Prints the document of one decision for people.
#pragma once

#include <ostream>
#include <string>

#include "tools/qrmctl/document.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace qrm::v1 {
class Decision;
}  // namespace qrm::v1

namespace qrm::manager::cli {

/// `json` as a document; text that is not JSON becomes {"text": json}.
Document ParseDecision(const std::string& json);

/// The decision, with the commit as its last step. The daemon reports the commit's time in another
/// field, because the document is written before the commit.
Document InnerDocument(const v1::Decision& decision);

/// The decisions with their inner documents unpacked.
Document DecisionsDocument(const google::protobuf::RepeatedPtrField<v1::Decision>& decisions);

/// Prints what a decision saw and decided, in the order of its steps; parts that `decision` lacks
/// are left out, and unknown ones are ignored.
void PrintDecision(const Document& decision, std::ostream& out);

}  // namespace qrm::manager::cli
