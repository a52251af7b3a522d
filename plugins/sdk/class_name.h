// What classes of QoS-class resources may be called.
#pragma once

#include <string_view>

namespace qrm::sdk {

/// True for 1 to 63 letters, digits, '-', '_' and '.', of which the first and the last are letters
/// or digits. Source: KEP-3008, of 2022.
bool IsClassName(std::string_view text);
/// The same, as a cure.
inline constexpr char kClassNameForm[] =
    "write 1 to 63 letters, digits, '-', '_' and '.', a letter or digit first and last";

}  // namespace qrm::sdk
