{{- define "qrm-scheduler.name" -}}
{{- if contains "qrm-scheduler" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-qrm-scheduler{{ end }}
{{- end }}

{{- define "qrm-scheduler.selector" -}}
app.kubernetes.io/name: qrm-scheduler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "qrm-scheduler.labels" -}}
{{ include "qrm-scheduler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* qrm-scheduler's configuration as a mapping. */ -}}
{{- define "qrm-scheduler.config" -}}
{{- $config := fromYaml .Values.config }}
{{- with $config.Error }}{{ fail (printf "cannot read config: %s; run qrm-scheduler serve --check-config on it" .) }}{{ end }}
{{- range list "address" "monitor-address" "kubeconfig" "context" "lease-name" "lease-namespace" "certificate-file" "key-file" "client-ca-file" }}
{{- if hasKey $config . }}{{ fail (printf "cannot take %s from config: it is the chart's; leave it out" .) }}{{ end }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* The custom resources that it follows, as a list of {apiGroups, resources}. */ -}}
{{- define "qrm-scheduler.followed" -}}
{{- $known := dict
      "numa-match" (dict "group" "topology.node.k8s.io" "plural" "noderesourcetopologies") }}
{{- $rules := list }}
{{- range (include "qrm-scheduler.config" . | fromYaml) | dig "resources" (list "numa") }}
  {{- with get $known . }}{{ $rules = append $rules (dict "apiGroups" (list .group) "resources" (list .plural) "verbs" (list "get" "list" "watch")) }}{{ end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}

{{- /*
The certificates by which kube-scheduler and qrm-scheduler know each other, as a mapping of base64: those of the release's
Secrets where there are such, else new ones, which are the same in all templates.
*/ -}}
{{- define "qrm-scheduler.certificates" -}}
{{- if not (hasKey .Values "_certificates") }}
  {{- $name := include "qrm-scheduler.name" . }}
  {{- $server := lookup "v1" "Secret" .Release.Namespace (printf "%s-server" $name) }}
  {{- $client := lookup "v1" "Secret" .Release.Namespace (printf "%s-client" $name) }}
  {{- if and $server $client }}
    {{- $_ := set .Values "_certificates" (dict "server" $server.data "client" $client.data) }}
  {{- else }}
    {{- $ca := genCA $name 3650 }}
    {{- $made := dict }}
    {{- range list "server" "client" }}
      {{- $signed := genSignedCert (printf "%s-%s" $name .) (list "127.0.0.1") (list "localhost") 3650 $ca }}
      {{- $_ := set $made . (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $signed.Cert) "tls.key" (b64enc $signed.Key)) }}
    {{- end }}
    {{- $_ := set .Values "_certificates" $made }}
  {{- end }}
{{- end }}
{{- toYaml (get .Values "_certificates") }}
{{- end }}
