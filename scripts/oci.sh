#!/usr/bin/env bash
# Packs a directory as a container image, into an archive that containerd, docker, podman and skopeo read: an OCI image
# layout, with the index of `docker save` beside it. The same files make the same image.
#   scripts/oci.sh DIRECTORY NAME:TAG ENTRYPOINT ARCHIVE [LABEL=VALUE...]
set -euo pipefail

if (($# < 4)); then
  sed -n '4s/^# *//p' "$0" >&2
  exit 2
fi
rootfs=$1 name=$2 entrypoint=$3 archive=$4
shift 4
layout=$(mktemp -d)
trap 'rm -rf "$layout"' EXIT
mkdir -p "$layout/blobs/sha256"

pack() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf - "${@:2}"; }

# Stores standard input as a blob and prints "digest size".
add_blob() {
  local digest
  cat >"$layout/blob"
  digest=$(sha256sum "$layout/blob" | cut -d' ' -f1)
  echo "$digest $(stat -c %s "$layout/blob")"
  mv "$layout/blob" "$layout/blobs/sha256/$digest"
}

descriptor() {
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s' "$1" "$2" "$3"
}

labels=''
for label; do
  labels+=$(printf '%s"%s":"%s"' "${labels:+,}" "${label%%=*}" "${label#*=}")
done
layer=$(pack "$rootfs" . | add_blob)
config=$(printf '{"architecture":"%s","os":"linux","config":{"User":"0:0","Env":["PATH=/usr/local/sbin"],"Entrypoint":["%s"],"Labels":{%s}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$(dpkg --print-architecture)" "$entrypoint" "$labels" "${layer% *}" | add_blob)
# shellcheck disable=SC2086  # digest and size are two words
manifest=$(printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[%s}]}' \
  "$(descriptor config.v1+json $config)" "$(descriptor layer.v1.tar $layer)" | add_blob)
# shellcheck disable=SC2086
printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"io.containerd.image.name":"%s"}}]}' \
  "$(descriptor manifest.v1+json $manifest)" "$name" >"$layout/index.json"
printf '[{"Config":"blobs/sha256/%s","RepoTags":["%s"],"Layers":["blobs/sha256/%s"]}]' \
  "${config% *}" "$name" "${layer% *}" >"$layout/manifest.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
pack "$layout" oci-layout index.json manifest.json blobs >"$archive"
