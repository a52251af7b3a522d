// std::chrono's durations and clocks. <chrono> of GCC 12 adds 10,000 lines for calendars and their
// formats, which no header needs.
#pragma once

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // the part of libstdc++'s <chrono> that <mutex> includes
#else
#include <chrono>
#endif
