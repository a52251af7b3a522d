// std::chrono's durations and clocks. <chrono> of GCC 12 adds 10,000 lines for calendars and their
// formats, which no header needs.
#pragma once

#include <mutex>  // whose waits take both
