// Which names classes of QoS-class resources may have.
#pragma once

#include <string_view>

namespace qrm::sdk {

/// True for 1 to 63 letters, digits, '-', '_' and '.', where the first and the last are letters or
/// digits. Source: KEP-3008 (2022).
bool IsClassName(std::string_view text);
/// The same rule, as the last part of an error.
inline constexpr char kClassNameForm[] =
    "write 1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";

}  // namespace qrm::sdk
