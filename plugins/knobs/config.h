// The operator's configuration of a type that is a table of knobs.
#pragma once

#include <map>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/knobs/knob.h"

namespace qrm::knobs {

/// Knob -> value, in the form that the kernel shows.
using KnobValues = std::map<std::string, std::string>;

/// Reads `classes: {NAME: {KNOB: VALUE, ...}}` by the table of `type`. Errors: kInvalidArgument
/// with file, line and key for anything else.
StatusOr<std::map<std::string, KnobValues>> ParseConfig(const config::Section& file,
                                                        const KnobType& type);

/// The value that the kernel shows after `text` was written to `knob`; `page` is the page size.
/// Errors: kInvalidArgument with the permitted values.
StatusOr<std::string> ShownValue(const Knob& knob, const std::string& text, uint64_t page);

}  // namespace qrm::knobs
