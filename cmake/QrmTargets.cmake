# How a library, a binary, a test, a benchmark and a set of protos are declared in this tree.

add_library(qrm_flags INTERFACE)
target_compile_options(qrm_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Werror
  -Wno-missing-field-initializers)  # fires on every designated initialiser
# Standalone Asio's fences are not understood by the thread sanitizer, and GCC 12 refuses them under it.
target_compile_definitions(qrm_flags INTERFACE BOOST_ASIO_NO_DEPRECATED)
if(QRM_SANITIZE)
  add_compile_options(-fsanitize=${QRM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${QRM_SANITIZE})
  if(QRM_SANITIZE MATCHES thread)
    # protobuf's maps have one more member where the macro is defined; the library, built without, knows nothing of it.
    add_compile_options(-U__SANITIZE_THREAD__)
    add_compile_definitions(QRM_THREAD_SANITIZER BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# For what is large by what it includes and runs rarely: all code of a daemon is resident.
set(QRM_SMALL_CODE $<$<CONFIG:Release>:-Os>)

# qrm_library(NAME topology SRCS a.cc DEPS qrm::api): static library qrm_topology, alias qrm::topology. RARE: its code
# runs rarely, so that its size matters more than its speed.
function(qrm_library)
  cmake_parse_arguments(ARG "RARE" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(qrm_${ARG_NAME} STATIC ${ARG_SRCS})
  add_library(qrm::${ARG_NAME} ALIAS qrm_${ARG_NAME})
  set_target_properties(qrm_${ARG_NAME} PROPERTIES EXPORT_NAME ${ARG_NAME})
  target_include_directories(qrm_${ARG_NAME} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(qrm_${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:qrm_flags>)
  if(ARG_RARE)
    target_compile_options(qrm_${ARG_NAME} PRIVATE ${QRM_SMALL_CODE})
  endif()
endfunction()

# qrm_tool(NAME vector-check SRCS main.cc DEPS qrm::topology): an executable in build/<preset>/bin that stays there.
function(qrm_tool)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} qrm_flags)
endfunction()

# qrm_binary(NAME qrmd SRCS main.cc DEPS qrm::manager): the same, and part of what is installed.
function(qrm_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  qrm_tool(${ARGN})
  target_link_options(${ARG_NAME} PRIVATE -Wl,-z,pack-relative-relocs)  # half a megabyte less to load
  install(TARGETS ${ARG_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT programs)
endfunction()

# qrm_test(topology/merge_test.cc DEPS qrm::topology LABEL unit): test binary test_topology_merge_test. Several
# sources of one room may share a binary: qrm_test(a_test.cc SRCS b_test.cc ...).
function(qrm_test MAIN)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SRCS;DEPS;ARGS" ${ARGN})
  string(REGEX REPLACE "\\.cc$" "" name ${MAIN})
  string(REPLACE "/" "_" name ${name})
  add_executable(test_${name} ${MAIN} ${ARG_SRCS})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPS} GTest::gmock_main qrm_flags)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND test_${name} ${ARG_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# qrm_bench(topology_bench.cc DEPS qrm::topology): Google Benchmark binary in build/<preset>/bench, run once by ctest.
function(qrm_bench MAIN)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  string(REGEX REPLACE "\\.cc$" "" name ${MAIN})
  add_executable(${name} ${MAIN} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main qrm_flags)
  if(QRM_TESTS)
    add_test(NAME bench_${name} COMMAND ${name} --benchmark_min_time=0.01)
    set_tests_properties(bench_${name} PROPERTIES LABELS bench TIMEOUT 300)
  endif()
endfunction()

# qrm_bench_program(admission_bench.cc SRCS floor.cc DEPS qrm::registry PROGRAMS qrmd): a benchmark with a main of its
# own, for what needs processes or turns; `--smoke` is a short run without a verdict. PROGRAMS are built before it.
function(qrm_bench_program MAIN)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;PROGRAMS" ${ARGN})
  string(REGEX REPLACE "\\.cc$" "" name ${MAIN})
  add_executable(${name} ${MAIN} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} qrm_flags)
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
  endif()
  if(QRM_TESTS)
    add_test(NAME bench_${name} COMMAND ${name} --smoke)
    set_tests_properties(bench_${name} PROPERTIES LABELS bench TIMEOUT 300)
  endif()
endfunction()
