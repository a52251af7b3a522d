// QRM_CHECK ends the process on a broken invariant of our own code. Input from a socket, a file or
// a plugin never reaches a check unvalidated.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the process with file, line and text when `condition` is false: the state is on disk and a
/// restart is cheap.
#define QRM_CHECK(condition)                                                                 \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
