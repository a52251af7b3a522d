#!/usr/bin/env bash
# Installs programs and SDK into a directory of their own, then builds the example plugin against it, outside the tree,
# and runs its test.
#   package_test.sh SOURCE_DIR BUILD_DIR [SANITIZERS]
set -euo pipefail

source_dir=$1
build_dir=$2
sanitizers=${3:-}  # the libraries may have been built with some
work=$(mktemp -d /tmp/qrm-package.XXXXXX)
trap 'kill "${driver:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

cmake --install "$build_dir" --prefix "$work/prefix" --component sdk >"$work/install.log"
cmake --install "$build_dir" --prefix "$work/prefix" --component programs >>"$work/install.log"
diff <(ls "$work/prefix/sbin") <(printf '%s\n' qrm-cci-driver qrm-plugin-check qrm-plugin-cpu qrm-plugin-memory qrm-plugin-nic qrm-scheduler qrmctl qrmd)
"$work/prefix/bin/qrm-plugin-check" --help >"$work/help.log"
cp -r "$source_dir/plugins/examples/lanes" "$work/lanes"

# The SDK's page shows exactly what is built here.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source_dir/docs/plugins.md" | sed '/^```$/,$d; 1d'; }
diff <(block cpp) "$work/lanes/lane_plugin.cc"
diff <(block cmake) "$work/lanes/CMakeLists.txt"
lines=$(wc -l <"$work/lanes/lane_plugin.cc")
[ "$lines" -lt 50 ] || { echo "the example has $lines lines; keep it below 50"; exit 1; }

# Its other pieces of code: the first block in language $1 of page $3 that has $2 in it.
piece() { awk -v fence="^\`\`\`$1\$" -v what="$2" '
  $0 ~ fence { inside = 1; text = ""; next }
  /^```$/ && inside { inside = 0; if (index(text, what)) { printf "%s", text; exit } }
  inside { text = text $0 "\n" }' "$source_dir/docs/${3:-plugins.md}"; }
piece cpp NearPlugin >"$work/lanes/near_plugin.cc"
cat >"$work/lanes/pieces.cc" <<CPP
#include <atomic>
#include <plugins/sdk/fake_manager.h>
#include <plugins/sdk/running_plugin.h>
#include "lane_plugin.cc"
struct WatchingPlugin : qrm::sdk::ResourcePlugin {
$(piece cpp OnLaneBroken)
  std::atomic<int> broken_ = -1;
};
void Test(const std::string& directory) {
$(piece cpp FakeManager::Start)
}
CPP
cat >>"$work/lanes/CMakeLists.txt" <<'CMAKE'
add_library(pieces OBJECT near_plugin.cc pieces.cc)
target_link_libraries(pieces PRIVATE qrm::fake_manager)
CMAKE
# The responses in Python, and each of their fields.
piece python ResourceAllocationInfo >"$work/responses.py"
cat >"$work/fields.py" <<'PYTHON'
import sys
from resourceplugin.v1alpha1 import api_pb2 as plugin
exec(open(sys.argv[1]).read())
request = plugin.ResourceRequest(pod_uid="u", container_name="main", resource_name="example.com/lane")
assert GetTopologyHints(None, request, None).resource_hints[0].value.hints[0].nodes == [0]
assert Allocate(None, request, None).allocation_result.resource_allocation["example.com/lane"].envs["LANE"] == "0"
page = open(sys.argv[2]).read()
for message in (plugin.ResourceHintsResponse, plugin.ResourceAllocationResponse, plugin.ResourceAllocationInfo, plugin.Mount, plugin.DeviceSpec):
    for field in message.DESCRIPTOR.fields:
        assert f"`{field.name}`" in page, f"docs/plugins.md does not have {field.name} of {message.DESCRIPTOR.name}"
PYTHON
"$source_dir/test/interop/python.sh" "$work/modules" "$work/fields.py" "$work/responses.py" "$source_dir/docs/plugins.md" || [ $? -eq 77 ]

# The example of a type of classes, too.
cp "$source_dir/plugins/examples/open_files/open_files_plugin.cc" "$work/lanes"
cat >>"$work/lanes/CMakeLists.txt" <<'CMAKE'
add_executable(open_files_plugin open_files_plugin.cc)
target_link_libraries(open_files_plugin PRIVATE qrm::sdk)
CMAKE

# The same without CMake.
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name qrm.pc)")
# shellcheck disable=SC2046
[ -n "$sanitizers" ] || g++ "$work/lanes/lane_plugin.cc" $(pkg-config --cflags --libs qrm) -o "$work/lane_plugin"
[ -n "$sanitizers" ] || "$work/lane_plugin" --help >"$work/help.log"

# The compute driver.
cp "$source_dir/plugins/examples/round_robin/round_robin_driver.cc" "$work/lanes"
cat >>"$work/lanes/CMakeLists.txt" <<'CMAKE'
add_executable(round_robin_driver round_robin_driver.cc)
target_link_libraries(round_robin_driver PRIVATE qrm::sdk)
CMAKE
lines=$(wc -l <"$work/lanes/round_robin_driver.cc")
[ "$lines" -lt 60 ] || { echo "the driver has $lines lines; keep it below 60"; exit 1; }
# The same driver with flags of its own, run with a fake manager.
{ sed '/^int main/,$d; s/"ROUND_ROBIN_CPUS"/variable_/; s/^ private:/  explicit RoundRobin(std::string variable) : variable_(std::move(variable)) {}\n\n&\n  std::string variable_;/' \
    "$work/lanes/round_robin_driver.cc"; piece cpp ParseSettings cci.md; } >"$work/lanes/flags_driver.cc"
cp "$source_dir/test/plugins/sdk/stranger_driver.cc" "$work/lanes"
cat >>"$work/lanes/CMakeLists.txt" <<'CMAKE'
add_executable(flags_driver flags_driver.cc)
target_link_libraries(flags_driver PRIVATE qrm::sdk)
add_executable(stranger_driver stranger_driver.cc)
target_link_libraries(stranger_driver PRIVATE qrm::fake_manager)
add_test(NAME stranger_driver COMMAND stranger_driver $<TARGET_FILE:flags_driver>)
CMAKE

# A driver in Python of the installed protos alone, seen to decide and to change what a container has by the installed check.
cp "$source_dir/test/interop/cci/driver.py" "$work"
QRM_PROTOS=$work/prefix/share/qrm/proto "$source_dir/test/interop/python.sh" "$work/driver_modules" "$work/driver.py" \
  "$work/python.sock" >"$work/python.log" &
driver=$!
while [ ! -S "$work/python.sock" ] && kill -0 "$driver" 2>/dev/null; do sleep 0.05; done
if [ -S "$work/python.sock" ]; then
  "$work/prefix/bin/qrm-plugin-check" "$work/python.sock" --cci --amount 2 --machine "synthetic:package:1 [numa] core:8 pu:1" >"$work/python_check.log" \
    || { cat "$work/python_check.log"; exit 1; }
  grep -q "ok      admits container main: CPUs 1-2" "$work/python_check.log"
  grep -q "ok      chooses for a running container" "$work/python_check.log"
  kill "$driver"
  wait "$driver" || true
else
  wait "$driver" || [ $? -eq 77 ]
fi

# Every header that is installed compiles by itself.
mkdir "$work/lanes/headers"
(cd "$work/prefix/include/qrm" && find . -name '*.h' -printf '%P\n') | while IFS= read -r header; do
  printf '#include <%s>\n' "$header" >"$work/lanes/headers/${header//\//_}.cc"
done
cat >>"$work/lanes/CMakeLists.txt" <<'CMAKE'
file(GLOB headers headers/*.cc)
add_library(every_header OBJECT ${headers})
target_link_libraries(every_header PRIVATE qrm::sdk)
CMAKE

cmake -S "$work/lanes" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror ${sanitizers:+-fsanitize=$sanitizers}" >"$work/cmake.log" \
  || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure
