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

{{- /* The value of a key of qrmd's configuration, by (list $ KEY DEFAULT). */ -}}
{{- define "qrm.key" -}}
{{- $config := fromYaml (index . 0).Values.config }}
{{- with $config.Error }}{{ fail (printf "cannot read config: %s; run qrmd --check-config on it" .) }}{{ end }}
{{- if hasKey $config (index . 1) }}{{ get $config (index . 1) | default "" }}{{ else }}{{ index . 2 }}{{ end }}
{{- end }}

{{- define "qrm.metricsAddress" }}{{ include "qrm.key" (list . "metrics-address" ":9753") }}{{ end }}

{{- define "qrm.metricsPort" }}{{ include "qrm.metricsAddress" . | splitList ":" | last }}{{ end }}

{{- define "qrm.kubeletUrl" }}{{ include "qrm.key" (list . "kubelet-url" "") }}{{ end }}

{{- /*
The node's directories that qrmd needs, as a mapping from path to the hostPath's type and the mount's options. They are
directories, not sockets: a server that is restarted makes a new socket. Host mounts that come and go below those of
the runtime and of kubelet come and go here too (HostToContainer): else qrmd would keep volumes of pods from being
unmounted. Of qrmd's own, the parents are mounted: it makes the directories itself, with their modes.
*/ -}}
{{- define "qrm.directories" -}}
{{- $directories := dict }}
{{- $following := dict "type" "Directory" "mount" (dict "mountPropagation" "HostToContainer") }}
{{- $reading := dict "type" "Directory" "mount" (dict "mountPropagation" "HostToContainer" "readOnly" true) }}
{{- $made := dict "type" "DirectoryOrCreate" "mount" dict }}
{{- $kubelet := include "qrm.key" (list . "kubelet-state-dir" "/var/lib/kubelet") }}
{{- with $kubelet }}{{ $_ := set $directories . $reading }}{{ end }}
{{- range list
      (include "qrm.key" (list . "kubelet-pods-socket" "/var/lib/kubelet/pods-api/pods-api.sock"))
      (include "qrm.key" (list . "kubelet-pod-resources-socket" "/var/lib/kubelet/pod-resources/kubelet.sock")) }}
  {{- if and . (not (and $kubelet (hasPrefix (printf "%s/" $kubelet) .))) }}{{ $_ := set $directories (dir .) $reading }}{{ end }}
{{- end }}
{{- $_ := set $directories (include "qrm.key" (list . "cgroup-root" "/sys/fs/cgroup")) $reading }}
{{- range list
      (include "qrm.key" (list . "nri-socket" "/var/run/nri/nri.sock"))
      (include "qrm.key" (list . "control-socket" "/run/qrm/control.sock"))
      (include "qrm.key" (list . "state-dir" "/var/lib/qrm/state"))
      (include "qrm.key" (list . "registration-dir" "/var/lib/qrm/resource-plugins"))
      (include "qrm.key" (list . "plugins-registry-dir" "/var/lib/qrm/plugins_registry"))
      (include "qrm.key" (list . "pod-resources-socket" "/var/lib/qrm/pod-resources/kubelet.sock") | dir) }}
  {{- $_ := set $directories (dir .) $made }}
{{- end }}
{{- $_ := set $directories (include "qrm.key" (list . "cri-socket" "/run/containerd/containerd.sock") | dir) $following }}
{{- toYaml $directories }}
{{- end }}

{{- /* The name of a directory's volume. */ -}}
{{- define "qrm.volume" }}{{ regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" | trunc 63 | trimSuffix "-" }}{{ end }}

{{- define "qrm.probe" -}}
{{- $address := include "qrm.metricsAddress" (index . 0) }}
{{- $port := include "qrm.metricsPort" (index . 0) -}}
httpGet:
  path: {{ index . 1 }}
  port: metrics
  {{- with trimSuffix (printf ":%s" $port) $address | trimAll "[]" }}
  host: {{ . | quote }}
  {{- end }}
{{- end }}
