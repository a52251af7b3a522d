// The document of one decision, for people.
#pragma once

#include <ostream>
#include <string>

#include "manager/cli/document.h"

namespace qrm::manager::cli {

/// `json` as a document; text that is no JSON becomes {"text": json}.
Document ParseDecision(const std::string& json);

/// Prints what a decision saw and said, in the order of its steps; parts that `decision` lacks are
/// left out, and unknown ones are ignored.
void PrintDecision(const Document& decision, std::ostream& out);

}  // namespace qrm::manager::cli
