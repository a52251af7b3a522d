// Errors as values: absl::Status under our own names, with early returns.
#pragma once

#include <string>
#include <string_view>
#include <utility>  // QRM_ASSIGN_OR_RETURN

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace qrm {

using Status = absl::Status;
template <typename T>
using StatusOr = absl::StatusOr<T>;
using StatusCode = absl::StatusCode;

inline Status OkStatus() {
  return absl::OkStatus();
}

/// The message of `status` as a standard string (Debian's Abseil has a string_view of its own).
inline std::string MessageOf(const Status& status) {
  return std::string(status.message());
}

/// `status` with `context` put before its message; an OK status stays OK.
inline Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) {
    return status;
  }
  return {status.code(), std::string(context).append(": ").append(MessageOf(status))};
}

}  // namespace qrm

#define QRM_STATUS_CONCAT_INNER(a, b) a##b
#define QRM_STATUS_CONCAT(a, b) QRM_STATUS_CONCAT_INNER(a, b)

/// Returns from the calling function when `expr` (a Status) is an error.
#define QRM_RETURN_IF_ERROR(expr)                              \
  do {                                                         \
    if (::qrm::Status qrm_status = (expr); !qrm_status.ok()) { \
      return qrm_status;                                       \
    }                                                          \
  } while (false)

/// `QRM_ASSIGN_OR_RETURN(const int n, Parse(text))`: the value of a StatusOr, or an early return of
/// its error.
#define QRM_ASSIGN_OR_RETURN(lhs, expr) \
  QRM_ASSIGN_OR_RETURN_IMPL(QRM_STATUS_CONCAT(qrm_status_or_, __LINE__), lhs, expr)
#define QRM_ASSIGN_OR_RETURN_IMPL(temporary, lhs, expr) \
  auto temporary = (expr);                              \
  if (!temporary.ok()) {                                \
    return temporary.status();                          \
  }                                                     \
  lhs = *std::move(temporary)
