// The classes of a type that is a table of knobs, as the operator writes them.
#pragma once

#include <map>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/knobs/knob.h"

namespace qrm::knobs {

/// Knob -> value, in the words in which the kernel shows it.
using KnobValues = std::map<std::string, std::string>;

/// Reads `classes: {NAME: {KNOB: VALUE, ...}}` by the table of `type`.
/// Errors: kInvalidArgument with file, line and key for anything else: nothing is skipped.
StatusOr<std::map<std::string, KnobValues>> ParseConfig(const config::Section& file,
                                                        const KnobType& type);

/// `text` as the kernel shows it once it was written to `knob`; `page` is the size of a page.
/// Errors: kInvalidArgument with what may be written.
StatusOr<std::string> ShownValue(const Knob& knob, const std::string& text, uint64_t page);

}  // namespace qrm::knobs
