# shellcheck shell=bash disable=SC2154
# Functions that make what the node of scripts/cluster.sh runs of: packages, certificates, configurations and images. For
# that script, which sources this file and scripts/debian.sh, and has `root`, `dir`, `cache`, `packages`, `programs` and `address`.

# --- packages -----------------------------------------------------------------------------------------

# Debian's CNI plugins and busybox, unpacked once below the cache; nothing is installed. Sets `node_packages`.
fetch_node_packages() {
  local work package own
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  node_packages=$cache/cluster-$own
  exec 9>"$cache/cluster.lock"
  flock 9
  if [[ ! -d $node_packages ]]; then
    work=$(mktemp -d "$cache/cluster.XXXXXX")
    make_apt "$work/apt" "$own" >/dev/null
    (cd "$work/apt" && private_apt "$work/apt" get download containernetworking-plugins busybox-static) ||
      fail "cannot download containernetworking-plugins and busybox-static: see above; check the network or the mirror"
    for package in "$work"/apt/*.deb; do
      dpkg -x "$package" "$work/root"
    done
    mv "$work/root" "$node_packages"
    rm -rf "$work"
  fi
  exec 9>&-
}

# --- certificates -------------------------------------------------------------------------------------

# certificate NAME SUBJECT [ALTERNATIVE NAMES]: signed by the cluster's authority.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
    -extfile <(echo "extendedKeyUsage=clientAuth,serverAuth"; [[ -z ${3:-} ]] || echo "subjectAltName=$3")
}

make_certificates() {
  (
    cd "$dir/pki"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=kube-ca -keyout ca.key -out ca.crt
    certificate apiserver /CN=kube-apiserver \
      "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:10.96.0.1,IP:$address,IP:127.0.0.1"
    certificate admin /O=system:masters/CN=admin
    certificate kubelet /O=system:nodes/CN=system:node:node
    certificate scheduler /CN=system:kube-scheduler
    certificate controller-manager /CN=system:kube-controller-manager
    openssl genrsa -out sa.key 2048
    openssl rsa -in sa.key -pubout -out sa.pub
  ) >"$dir/logs/certificates.log" 2>&1 || {
    cat "$dir/logs/certificates.log" >&2
    fail "openssl cannot make the cluster's certificates: see above"
  }
}

# --- configurations -----------------------------------------------------------------------------------

# kubeconfig NAME: for the owner of the certificate of that name.
kubeconfig() {
  cat >"$dir/etc/$1.conf" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1", certificate-authority: $dir/pki/ca.crt}}]
users: [{name: u, user: {client-certificate: $dir/pki/$1.crt, client-key: $dir/pki/$1.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
YAML
}

# No eviction but by memory: how full the disk is has nothing to do with what is tried here.
write_kubelet_configuration() {
  cat >"$dir/etc/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: $dir/pki/ca.crt}, webhook: {enabled: true}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: false
oomScoreAdj: 0
staticPodPath: $dir/static-pods
volumePluginDir: $dir/volume-plugins
evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: ""
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
featureGates: {PodsAPI: true}
YAML
}

write_containerd_configuration() {
  cat >"$dir/etc/containerd.toml" <<TOML
version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[plugins."io.containerd.internal.v1.opt"]
  path = "$dir/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  plugin_path = "$dir/nri/plugins"
  plugin_config_path = "$dir/nri/conf.d"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$node_packages/usr/lib/cni"
  conf_dir = "$dir/etc/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "$packages/usr/sbin/runc"
  SystemdCgroup = false
TOML
  mkdir -p "$dir/etc/cni"
  cat >"$dir/etc/cni/10-pods.conflist" <<'JSON'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

# What is written over the API server, and what Node status became of it; read by tests.
write_audit_policy() {
  cat >"$dir/etc/audit.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources: [{group: "", resources: [nodes, nodes/status]}]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
YAML
}

write_configurations() {
  local name
  for name in admin kubelet scheduler controller-manager; do
    kubeconfig "$name"
  done
  write_kubelet_configuration
  write_containerd_configuration
  write_audit_policy
}

# --- images -------------------------------------------------------------------------------------------

# Of busybox, for pods, and for the sandbox of each pod, which only has to be there; qrm's own, and the one that its
# scheduler's chart takes.
make_images() {
  local rootfs=$dir/rootfs applet
  install -D -m 0755 "$node_packages/bin/busybox" "$rootfs/bin/busybox"
  mkdir -p "$rootfs/usr/local/sbin" "$rootfs/tmp"
  for applet in $("$rootfs/bin/busybox" --list); do
    ln -s /bin/busybox "$rootfs/usr/local/sbin/$applet"
  done
  ln -s busybox "$rootfs/bin/sh"
  printf '#!/bin/sh\nexec sleep 2147483647\n' >"$rootfs/pause"
  chmod 0755 "$rootfs" "$rootfs/pause"
  "$root/scripts/oci.sh" "$rootfs" localhost/busybox:1 /bin/sh "$dir/images/busybox.tar"
  "$root/scripts/oci.sh" "$rootfs" localhost/pause:1 /pause "$dir/images/pause.tar"
  rm -rf "$rootfs"
  install -D -m 0755 "$programs/kube-scheduler" "$rootfs/usr/local/sbin/kube-scheduler"
  "$root/scripts/oci.sh" "$rootfs" "registry.k8s.io/kube-scheduler:$("$programs/kube-scheduler" --version | cut -d' ' -f2)" \
    /usr/local/sbin/kube-scheduler "$dir/images/kube-scheduler.tar"
  rm -rf "$rootfs"
  "$root/scripts/image.sh" "$dir/images/qrm.tar" >/dev/null
}
