# Writes OUT, which has the bytes of FILES in it as manager/page/page_files.h declares them.
set(arrays "")
set(cases "")
set(count 0)
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${count}[] = {${bytes}};\n")
  string(APPEND cases "  if (name == \"${name}\") {\n    return {kFile${count}, sizeof(kFile${count})};\n  }\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "// Made by manager/page/embed.cmake.
#include \"manager/page/page_files.h\"

namespace qrm::manager {
namespace {

${arrays}
}  // namespace

std::string_view FindPageFile(std::string_view name) {
${cases}  return {};
}

}  // namespace qrm::manager
")
