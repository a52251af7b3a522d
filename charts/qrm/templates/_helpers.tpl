{{- define "qrm.name" -}}
{{- if contains "qrm" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-qrm{{ end }}
{{- end }}

{{- define "qrm.selector" -}}
app.kubernetes.io/name: qrm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "qrm.labels" -}}
{{ include "qrm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* qrmd's configuration as a mapping. */ -}}
{{- define "qrm.config" -}}
{{- $config := fromYaml .Values.config }}
{{- with $config.Error }}{{ fail (printf "cannot read config: %s; run qrmd --check-config on it" .) }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{- /* The value of a key of qrmd's configuration, by (list $ KEY DEFAULT). */ -}}
{{- define "qrm.key" -}}
{{- $config := include "qrm.config" (index . 0) | fromYaml }}
{{- if hasKey $config (index . 1) }}{{ get $config (index . 1) | default "" }}{{ else }}{{ index . 2 }}{{ end }}
{{- end }}

{{- define "qrm.metricsAddress" }}{{ include "qrm.key" (list . "metrics-address" ":9753") }}{{ end }}

{{- define "qrm.metricsPort" }}{{ include "qrm.metricsAddress" . | splitList ":" | last }}{{ end }}

{{- /* Kubelet asks from the node's network. */ -}}
{{- define "qrm.probeAddress" }}{{ include "qrm.key" (list . "probe-address" (ternary "127.0.0.1:9754" ":9754" .Values.hostNetwork)) }}{{ end }}

{{- /*
Where kubelet lists its pods. By default only on Kubernetes 1.33 and newer, where the permission nodes/pods suffices: before,
the token could run commands in every container. Not if the configuration wants estimates.
*/ -}}
{{- define "qrm.defaultKubeletUrl" -}}
{{- $config := include "qrm.config" . | fromYaml }}
{{- $wanted := and .Values.hostNetwork (not (hasKey $config "kubelet-url")) (include "qrm.key" (list . "kubelet-pods-socket" "default")) }}
{{- if and $wanted (semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version) }}https://127.0.0.1:10250/pods{{ end }}
{{- end }}

{{- define "qrm.kubeletUrl" }}{{ include "qrm.key" (list . "kubelet-url" (include "qrm.defaultKubeletUrl" .)) }}{{ end }}

{{- define "qrm.reviewUrl" }}{{ include "qrm.key" (list . "metrics-review-url" "") }}{{ end }}

{{- /* The objects that qrmd publishes to the API server, as a list. */ -}}
{{- define "qrm.publish" }}{{ (include "qrm.config" . | fromYaml) | dig "publish" list | default list | toYaml }}{{ end }}

{{- define "qrm.readsSlices" }}{{ if eq (include "qrm.key" (list . "resource-slices" "false")) "true" }}yes{{ end }}{{ end }}

{{- /* Whether qrmd needs the token of its account. */ -}}
{{- define "qrm.needsToken" -}}
{{- $calls := or (include "qrm.publish" . | fromYamlArray) (include "qrm.readsSlices" .) }}
{{- $publishes := and $calls (not (include "qrm.key" (list . "kubeconfig" ""))) }}
{{- if or (include "qrm.kubeletUrl" .) (include "qrm.reviewUrl" .) $publishes }}yes{{ end }}
{{- end }}

{{- /*
What qrmd needs of the node, as a mapping from path to the hostPath's type and the mount's options:
- The directory of each socket: a restarted server creates a new socket.
- Of kubelet's directory, which holds the secrets of all pods, two files and the directories of two sockets. The files
  must exist: a directory that is created in the place of a file would keep kubelet from starting.
- HostToContainer: mounts that come and go below the runtime's directory come and go here, too. Otherwise qrmd would keep
  root file systems from being unmounted.
- Cgroup v1 is a mount for each controller. These mounts are read-only, too, unless cpusets or classes are written there.
- CDI specifications, which say what the devices of claims are.
- Devices: the node's /dev. resctrl is below /sys/fs, which every node has. The runtime's configuration shows whether the
  runtime manages resctrl itself.
- A file of classes below /etc/qrm is from the ConfigMap, any other from the node.
- The parents of qrmd's own directories, which qrmd creates with their modes.
*/ -}}
{{- define "qrm.mounts" -}}
{{- $mounts := dict }}
{{- $file := dict "type" "File" "mount" (dict "readOnly" true) }}
{{- $following := dict "type" "Directory" "mount" (dict "mountPropagation" "HostToContainer" "readOnly" true) }}
{{- $all := dict "type" "Directory" "mount" (semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version
      | ternary (dict "readOnly" true "recursiveReadOnly" "IfPossible") (dict "readOnly" true)) }}
{{- $reading := dict "type" "DirectoryOrCreate" "mount" (dict "readOnly" true) }}
{{- $writing := dict "type" "DirectoryOrCreate" "mount" dict }}
{{- with include "qrm.key" (list . "kubelet-state-dir" "/var/lib/kubelet") }}
  {{- $_ := set $mounts (printf "%s/cpu_manager_state" .) $file }}
  {{- $_ := set $mounts (printf "%s/memory_manager_state" .) $file }}
{{- end }}
{{- range list
      (include "qrm.key" (list . "kubelet-pods-socket" "/var/lib/kubelet/pods-api/pods-api.sock"))
      (include "qrm.key" (list . "kubelet-pod-resources-socket" "/var/lib/kubelet/pod-resources/kubelet.sock"))
      (include "qrm.key" (list . "nri-socket" "/var/run/nri/nri.sock")) }}
  {{- if . }}{{ $_ := set $mounts (dir .) $reading }}{{ end }}
{{- end }}
{{- range (include "qrm.config" . | fromYaml) | dig "cdi-directories" (list "/etc/cdi" "/var/run/cdi") }}{{ $_ := set $mounts . $reading }}{{ end }}
{{- $types := include "qrm.classTypes" . | fromYaml }}
{{- $reads := and (empty $types) (ne (include "qrm.key" (list . "write-cpusets" "true")) "true") }}
{{- $_ := set $mounts (include "qrm.key" (list . "cgroup-root" "/sys/fs/cgroup")) ($reads | ternary $all (dict "type" "Directory" "mount" dict)) }}
{{- if hasKey $types "blockio" }}{{ $_ := set $mounts "/dev" $following }}{{ end }}
{{- if hasKey $types "rdt" }}
  {{- $_ := set $mounts "/sys/fs" (dict "type" "Directory" "mount" (dict "mountPropagation" "HostToContainer")) }}
  {{- $crio := contains "crio" (include "qrm.key" (list . "cri-socket" "/run/containerd/containerd.sock")) }}
  {{- $_ := set $mounts ($crio | ternary "/etc/crio" "/etc/containerd") $reading }}
{{- end }}
{{- range $type, $rules := $types }}
  {{- with get $rules "config-file" }}
    {{- if ne (dir .) "/etc/qrm" }}
      {{- $_ := set $mounts . $file }}
    {{- else if not (hasKey $.Values.configFiles (base .)) }}
      {{- fail (printf "cannot give qrmd %s, which class-types.%s.config-file in config names: add --set-file 'configFiles.%s=FILE', or name a file of the node" . $type (base . | replace "." "\\.")) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- with include "qrm.key" (list . "kubeconfig" "") }}{{ $_ := set $mounts . $file }}{{ end }}
{{- range include "qrm.netns" . | fromYamlArray }}{{ $_ := set $mounts (dir .) (merge (dict "type" "DirectoryOrCreate") $following) }}{{ end }}
{{- $_ := set $mounts (include "qrm.key" (list . "cri-socket" "/run/containerd/containerd.sock") | dir) $following }}
{{- range list
      (include "qrm.key" (list . "control-socket" "/run/qrm/control.sock"))
      (include "qrm.key" (list . "state-dir" "/var/lib/qrm/state"))
      (include "qrm.key" (list . "registration-dir" "/var/lib/qrm/resource-plugins"))
      (include "qrm.key" (list . "plugins-registry-dir" "/var/lib/qrm/plugins_registry"))
      (include "qrm.key" (list . "pod-resources-socket" "/var/lib/qrm/pod-resources/kubelet.sock") | dir) }}
  {{- $_ := set $mounts (dir .) $writing }}
{{- end }}
{{- toYaml $mounts }}
{{- end }}

{{- /* The name of a path's volume; that of a long path ends in its hash, for others may begin like it. */ -}}
{{- define "qrm.volume" }}
{{- $name := regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" }}
{{- if gt (len $name) 63 }}{{ $name = printf "%s-%s" (trunc 54 $name | trimSuffix "-") (sha256sum . | trunc 8) }}{{ end }}
{{- $name }}
{{- end }}

{{- define "qrm.probe" -}}
{{- $address := include "qrm.probeAddress" (index . 0) }}
{{- $port := $address | splitList ":" | last -}}
httpGet:
  path: {{ index . 1 }}
  port: {{ $port }}
  {{- with trimSuffix (printf ":%s" $port) $address | trimAll "[]" }}
  host: {{ . | quote }}
  {{- end }}
{{- end }}

{{- /* The network namespaces that the built-in nic plugin looks into, as a list of paths. */ -}}
{{- define "qrm.netns" -}}
{{- $config := include "qrm.config" . | fromYaml }}
{{- $nic := (($config.plugins | default dict).nic) | default dict }}
{{- $paths := list }}
{{- if and (eq (toString $nic.follow) "all") (has "nic" ($config | dig "builtin-plugins" (list "nic"))) }}
  {{- range $nic.nics }}{{ with .netns }}{{ $paths = append $paths . }}{{ end }}{{ end }}
{{- end }}
{{- $paths | toYaml }}
{{- end }}

{{- /* What it may do of what root may: set its threads' priority and that of containers, give a group the pod-resources
socket, set the OOM score of processes of other users, and enter network namespaces. */ -}}
{{- define "qrm.capabilities" -}}
{{- $needed := list }}
{{- $types := include "qrm.classTypes" . | fromYaml }}
{{- if or (include "qrm.key" (list . "nice" "-20")) (include "qrm.key" (list . "realtime-priority" "")) (hasKey $types "cpu-scheduling") }}{{ $needed = append $needed "SYS_NICE" }}{{ end }}
{{- if include "qrm.key" (list . "pod-resources-group" "") }}{{ $needed = append $needed "CHOWN" }}{{ end }}
{{- if hasKey $types "oom" }}{{ $needed = concat $needed (list "DAC_OVERRIDE" "SYS_RESOURCE") }}{{ end }}
{{- if include "qrm.netns" . | fromYamlArray }}{{ $needed = append $needed "SYS_ADMIN" }}{{ end }}
{{- concat $needed .Values.capabilities.add | uniq | toYaml }}
{{- end }}

{{- /* Kubernetes before 1.30 has AppArmor's profile in an annotation. */ -}}
{{- define "qrm.appArmorField" }}{{ semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version | ternary "yes" "" }}{{ end }}

{{- /* The runtimes' default profile denies writes below /sys, so that a class of rdt would have no group. */ -}}
{{- define "qrm.appArmorProfile" -}}
{{- $rdt := hasKey (include "qrm.classTypes" . | fromYaml) "rdt" }}
{{- if and $rdt (eq (.Values.appArmorProfile.type | default "") "RuntimeDefault") }}
  {{- fail "cannot run the class type rdt under AppArmor's default profile, which denies writes to resctrl: set appArmorProfile to {type: Unconfined}, or to {type: Localhost, localhostProfile: qrm} with files/qrm.apparmor of the chart loaded on the nodes" }}
{{- end }}
{{- .Values.appArmorProfile | default ($rdt | ternary (dict "type" "Unconfined") dict) | toYaml }}
{{- end }}

{{- define "qrm.appArmorAnnotation" -}}
{{- with include "qrm.appArmorProfile" . | fromYaml }}
{{- get (dict "RuntimeDefault" "runtime/default" "Unconfined" "unconfined") .type | default (printf "localhost/%s" .localhostProfile) }}
{{- end }}
{{- end }}

{{- define "qrm.seLinuxOptions" -}}
{{- .Values.seLinuxOptions | default (.Values.openshift.securityContextConstraints | ternary (dict "type" "spc_t") dict) | toYaml }}
{{- end }}

{{- define "qrm.securityContext" -}}
readOnlyRootFilesystem: true
# The runtime's sockets are root's.
runAsUser: 0
runAsGroup: 0
{{- if .Values.privileged }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
  add: {{- include "qrm.capabilities" . | nindent 4 }}
{{- with .Values.seccompProfile }}
seccompProfile: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $profile := include "qrm.appArmorProfile" . | fromYaml }}
{{- if and $profile (include "qrm.appArmorField" .) }}
appArmorProfile: {{- toYaml $profile | nindent 2 }}
{{- end }}
{{- end }}
{{- with include "qrm.seLinuxOptions" . | fromYaml }}
seLinuxOptions: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
