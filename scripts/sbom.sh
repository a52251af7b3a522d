#!/usr/bin/env bash
# Prints the SPDX document of an image's directory: the programs, the Debian packages whose libraries lie beside them or
# are linked in, and those whose headers are compiled in.
#   scripts/sbom.sh DIRECTORY VERSION
set -euo pipefail

if (($# != 2)); then
  sed -n '4s/^# *//p' "$0" >&2
  exit 2
fi
rootfs=$1 version=$2
# Libraries that are headers alone, or of which headers make much of what is compiled.
readonly header_packages=(libboost1.81-dev libcli11-dev nlohmann-json3-dev libfmt-dev)
architecture=$(dpkg --print-architecture)
distribution=$(. "$rootfs/etc/os-release" && echo "$ID-$VERSION_ID")

# One package; the copyright files in the image contain the licences.
package() { # NAME VERSION
  printf ',\n  {"SPDXID":"SPDXRef-%s","name":"%s","versionInfo":"%s","supplier":"Organization: Debian","downloadLocation":"NOASSERTION",' \
    "${1//+/-plus}" "$1" "$2"
  printf '"filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","copyrightText":"NOASSERTION",'
  printf '"externalRefs":[{"referenceCategory":"PACKAGE-MANAGER","referenceType":"purl","referenceLocator":"pkg:deb/debian/%s@%s?arch=%s&distro=%s"}]}' \
    "${1//+/%2B}" "${2//[+]/%2B}" "$architecture" "$distribution"
}

version_of() { dpkg-query -W -f '${Version}' "$1"; }

packages='' relations=''
for file in "$rootfs"/var/lib/dpkg/status.d/*; do
  name=${file##*/}
  packages+=$(package "$name" "$(version_of "$name")")
  relations+=$(printf ',\n  {"spdxElementId":"SPDXRef-qrm","relationshipType":"DEPENDS_ON","relatedSpdxElement":"SPDXRef-%s"}' "${name//+/-plus}")
done
for name in "${header_packages[@]}"; do
  packages+=$(package "$name" "$(version_of "$name")")
  relations+=$(printf ',\n  {"spdxElementId":"SPDXRef-%s","relationshipType":"BUILD_DEPENDENCY_OF","relatedSpdxElement":"SPDXRef-qrm"}' "${name//+/-plus}")
done

# The same image has the same document: its time is that of the sources, its name that of its contents.
created=$(date --utc --date "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" +%Y-%m-%dT%H:%M:%SZ)
contents=$(cd "$rootfs" && find . -type f ! -name '*.spdx.json' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
cat <<JSON
{"spdxVersion":"SPDX-2.3","dataLicense":"CC0-1.0","SPDXID":"SPDXRef-DOCUMENT","name":"qrm-$version",
 "documentNamespace":"https://spdx.org/spdxdocs/qrm-$version-$contents",
 "creationInfo":{"created":"$created","creators":["Tool: sbom.sh-$version"]},
 "packages":[
  {"SPDXID":"SPDXRef-qrm","name":"qrm","versionInfo":"$version","downloadLocation":"NOASSERTION","filesAnalyzed":false,"primaryPackagePurpose":"APPLICATION","licenseConcluded":"Apache-2.0","licenseDeclared":"Apache-2.0","copyrightText":"NOASSERTION"}$packages],
 "relationships":[
  {"spdxElementId":"SPDXRef-DOCUMENT","relationshipType":"DESCRIBES","relatedSpdxElement":"SPDXRef-qrm"}$relations]}
JSON
