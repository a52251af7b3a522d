# How a library, a binary, a test, a benchmark and a set of protos are declared in this tree.
include(CheckLinkerFlag)
include(GoogleTest)

add_library(qrm_flags INTERFACE)
target_compile_options(qrm_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Werror
  -Wno-missing-field-initializers  # fires on every designated initialiser
  # GCC warns of what is deprecated; Clang also of what std::stable_sort of GCC 12 uses within.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# A header that is compiled once needs the same definitions everywhere.
target_compile_definitions(qrm_flags INTERFACE BOOST_ASIO_NO_DEPRECATED QRM_VERSION="${PROJECT_VERSION}"
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
target_compile_options(qrm_flags INTERFACE -pthread)  # some libraries require it
if(NOT QRM_SANITIZE)
  target_compile_definitions(qrm_flags INTERFACE QRM_JEMALLOC)
else()
  # The thread sanitizer does not understand Standalone Asio's fences, and GCC 12 rejects them under it.
  add_compile_options(-fsanitize=${QRM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_compile_options(-g1)  # all that a report shows; variables and types take a tenth of the build
  add_link_options(-fsanitize=${QRM_SANITIZE})
  if(QRM_SANITIZE MATCHES thread)
    # protobuf's maps have one more member where the macro is defined; the library, built without, knows nothing of it.
    add_compile_options(-U__SANITIZE_THREAD__)
    add_compile_definitions(QRM_THREAD_SANITIZER BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# What test/check_hardening.sh looks for. Sanitizers have checks of their own in the same places, and _FORTIFY_SOURCE needs
# the optimiser.
set(QRM_HARDENING "")
if(QRM_HARDENED)
  if(QRM_SANITIZE OR NOT CMAKE_BUILD_TYPE MATCHES "^Rel")
    message(FATAL_ERROR "cannot harden this build: it is not optimised or has sanitizers; set QRM_HARDENED=OFF")
  endif()
  set(QRM_HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|i[3-6]86)$")
    list(APPEND QRM_HARDENING -fcf-protection)
  endif()
  add_link_options(-Wl,-z,relro,-z,now)
endif()

# Tests are linked far more often than they run: by gold in a quarter of the time, where there is one.
check_linker_flag(CXX -fuse-ld=gold QRM_HAS_GOLD)
set(QRM_QUICK_LINK $<$<BOOL:${QRM_HAS_GOLD}>:-fuse-ld=gold>)

# For what is large by what it includes and runs rarely: all code of a daemon is resident.
set(QRM_SMALL_CODE $<$<CONFIG:Release>:-Os>)

# qrm_units(TARGET [MOST]): compiles the sources of a target together, up to MOST (12) at a time, in units of equal size.
# They read their headers once, which takes a third of the time; a unit is what an edit compiles again, so it has bounds.
function(qrm_units TARGET)
  if(NOT QRM_UNITS)
    return()
  endif()
  set(most 12)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${TARGET} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(LENGTH sources count)
  math(EXPR units "(${count} + ${most} - 1) / ${most}")
  if(units GREATER 0)
    math(EXPR size "(${count} + ${units} - 1) / ${units}")
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
  # GCC takes what is in an anonymous namespace of an included source for a header's.
  target_compile_options(${TARGET} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# The headers of the standard library and of others that most sources read, compiled once for each way of compiling, are
# a tenth of the build. qrm_headers(NAME OPTION...) makes them for the libraries that follow.
function(qrm_headers NAME)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${NAME}.cc CONTENT "")
  add_library(${NAME} OBJECT ${PROJECT_BINARY_DIR}/${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE qrm_flags absl::statusor fmt::fmt)
  target_compile_options(${NAME} PRIVATE ${ARGN})
  target_precompile_headers(${NAME} PRIVATE <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional> <set>
    <string> <string_view> <system_error> <tuple> <utility> <vector> <absl/status/statusor.h> <fmt/ranges.h>)
endfunction()

function(qrm_use_headers NAME HEADERS)
  target_precompile_headers(${NAME} REUSE_FROM ${HEADERS})
  target_compile_options(${NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # so that ccache can keep the objects
endfunction()

# qrm_library(NAME topology SRCS a.cc DEPS qrm::api): static library qrm_topology, alias qrm::topology. RARE: its code
# runs rarely, so that its size matters more than its speed.
function(qrm_library)
  cmake_parse_arguments(ARG "RARE" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(qrm_${ARG_NAME} STATIC ${ARG_SRCS})
  add_library(qrm::${ARG_NAME} ALIAS qrm_${ARG_NAME})
  set_target_properties(qrm_${ARG_NAME} PROPERTIES EXPORT_NAME ${ARG_NAME})
  target_include_directories(qrm_${ARG_NAME} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(qrm_${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:qrm_flags>)
  qrm_units(qrm_${ARG_NAME})
  set(headers qrm_headers)
  if(ARG_RARE)
    target_compile_options(qrm_${ARG_NAME} PRIVATE ${QRM_SMALL_CODE})
    set(headers qrm_headers_small)
  endif()
  if(QRM_HEADERS)
    qrm_use_headers(qrm_${ARG_NAME} ${headers})
  endif()
endfunction()

# qrm_tool(NAME vector-check SRCS main.cc DEPS qrm::topology): an executable in build/<preset>/bin that stays there.
function(qrm_tool)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} qrm_flags)
  qrm_units(${ARG_NAME})
endfunction()

# qrm_binary(NAME qrmd SRCS main.cc DEPS qrm::manager): the same, and part of what is installed.
function(qrm_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  qrm_tool(${ARGN})
  set_property(TARGET ${ARG_NAME} PROPERTY QRM_LINKED_IN ON)
  target_link_options(${ARG_NAME} PRIVATE -Wl,-z,pack-relative-relocs)  # half a megabyte less to load
  install(TARGETS ${ARG_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT programs)
  set_property(GLOBAL APPEND PROPERTY QRM_BINARIES ${ARG_NAME})
endfunction()

# qrm_test(ROOM pods LABEL unit SRCS pod_events_test.cc DEPS qrm::manager_pods): in test/manager, makes the binary
# test_manager_pods_unit of what lies in test/manager/pods, and each TEST in it a test manager/pods/SUITE.CASE of ctest.
# Without ROOM, the room is the folder of the list itself. Each room has one binary for each label:
#   unit         no gRPC, clean under the thread sanitizer     integration  real sockets, nothing but this process and PROGRAMS
#   e2e          qrmd as it runs, some of them as root         quick        unit and integration, except the tests that SLOW names
# HOT: its tests compute much themselves. PROGRAMS are built before it and lie in QRM_BIN; PROPERTIES are those of each
# of its tests.
function(qrm_test)
  cmake_parse_arguments(ARG "HOT" "ROOM;LABEL;TIMEOUT;SLOW" "SRCS;DEPS;PROGRAMS;PROPERTIES" ${ARGN})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/test OUTPUT_VARIABLE room)
  if(ARG_ROOM)
    cmake_path(APPEND room ${ARG_ROOM})
    list(TRANSFORM ARG_SRCS PREPEND ${ARG_ROOM}/)
  endif()
  string(REPLACE "/" "_" name test_${room}_${ARG_LABEL})
  qrm_tool(NAME ${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} GTest::gmock_main)
  # Each test is a process of its own, and most of a short one's time would go to finding some fifty libraries.
  set_property(TARGET ${name} PROPERTY QRM_LINKED_IN ON)
  target_link_options(${name} PRIVATE ${QRM_QUICK_LINK})
  if(NOT ARG_HOT)
    # Most of a test's time is the tested code's: what the optimiser takes is a third of a build.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    qrm_use_test_headers(${name})
  endif()
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
    target_compile_definitions(${name} PRIVATE QRM_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  endif()

  set(labels ${ARG_LABEL})
  set(prefix ${room}/)
  if(ARG_LABEL MATCHES "^(unit|integration)$")
    list(APPEND labels quick)
  elseif(NOT ARG_LABEL STREQUAL e2e)  # what unit runs, with other input
    string(APPEND prefix ${ARG_LABEL}/)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} ${ARG_PROPERTIES})
  if(ARG_SLOW)
    qrm_discover_tests(${name} ${prefix} "-${ARG_SLOW}" "${labels}" "${properties}")
    qrm_discover_tests(${name} ${prefix} "${ARG_SLOW}" "${ARG_LABEL}" "${properties}")
  else()
    qrm_discover_tests(${name} ${prefix} "*" "${labels}" "${properties}")
  endif()
  foreach(label IN LISTS labels)
    qrm_test_group(${label} ${name})
  endforeach()
endfunction()

# GoogleTest's headers are compiled once, with the options of the tests: they are a tenth of what a test source costs.
function(qrm_use_test_headers NAME)
  if(NOT QRM_UNITS)
    return()
  endif()
  if(NOT TARGET qrm_test_headers)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "")
    add_library(qrm_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
    target_link_libraries(qrm_test_headers PRIVATE GTest::gmock qrm_flags)
    target_compile_options(qrm_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)
    target_precompile_headers(qrm_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  qrm_use_headers(${NAME} qrm_test_headers)
endfunction()

# Adds to ctest, when it starts, the tests of a binary that match `FILTER`. A binary that is not built is a test that
# fails, with the same labels.
function(qrm_discover_tests NAME PREFIX FILTER LABELS PROPERTIES)
  string(MD5 part "${FILTER}")
  set(list ${NAME}_${part})
  # Not after the build: it runs each program that is linked, whether its tests are wanted or not.
  gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_LIST ${list}
    TEST_PREFIX ${PREFIX} TEST_FILTER ${FILTER} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES ${PROPERTIES})
  # PROPERTIES takes no lists, such as several labels are.
  file(CONFIGURE OUTPUT ${list}_labels.cmake @ONLY CONTENT [=[
if(DEFINED @list@)
  set_tests_properties(${@list@} PROPERTIES LABELS "@LABELS@")
else()
  set_tests_properties(@NAME@_NOT_BUILT PROPERTIES LABELS "@LABELS@")
endif()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${list}_labels.cmake)
endfunction()

# Builds `PROGRAM` with target <label>_tests, which is all that `ctest -L <label>` runs.
function(qrm_test_group LABEL PROGRAM)
  if(NOT TARGET ${LABEL}_tests)
    add_custom_target(${LABEL}_tests)
  endif()
  add_dependencies(${LABEL}_tests ${PROGRAM})
endfunction()

# qrm_bench_program(admission_bench.cc SRCS floor.cc DEPS qrm::registry PROGRAMS qrmd): a benchmark in
# build/<preset>/bench; `--smoke`, by which ctest runs it, is a short run without a verdict. PROGRAMS are built before it. With
# BESIDE_CONTAINERD, it runs by scripts/containerd.sh.
function(qrm_bench_program MAIN)
  cmake_parse_arguments(ARG "BESIDE_CONTAINERD" "" "SRCS;DEPS;PROGRAMS" ${ARGN})
  string(REGEX REPLACE "\\.cc$" "" name ${MAIN})
  add_executable(${name} ${MAIN} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench QRM_LINKED_IN ON)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} qrm_flags)
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
  endif()
  set(beside)
  if(ARG_BESIDE_CONTAINERD)
    set(beside ${PROJECT_SOURCE_DIR}/scripts/containerd.sh run --cache ${PROJECT_SOURCE_DIR}/build/cache
               --probe $<TARGET_FILE:qrm-probe> --)
  endif()
  if(QRM_TESTS)
    add_test(NAME bench_${name} COMMAND ${beside} $<TARGET_FILE:${name}> --smoke)
    set_tests_properties(bench_${name} PROPERTIES LABELS bench TIMEOUT 300 RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
  endif()
endfunction()
