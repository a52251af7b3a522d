{{- /*
The labels and annotations of pods that qrmd reads, as a list: qrmd's own, and those that the configuration names. Without
those that the pattern below matches.
*/ -}}
{{- define "qrm.podKeys" -}}
{{- $config := include "qrm.config" . | fromYaml }}
{{- $keys := list "kubernetes.io/config.hash" "katalyst.kubewharf.io/qos_level" "katalyst.kubewharf.io/cpu_enhancement" "katalyst.kubewharf.io/memory_enhancement" }}
{{- range list
      (include "qrm.key" (list . "skip-annotation" "katalyst.kubewharf.io/skip_qrm_admit"))
      (include "qrm.key" (list . "pod-role-label" "katalyst.kubewharf.io/pod_role"))
      (include "qrm.key" (list . "pod-role-annotation" "kubernetes.io/pod-role"))
      (include "qrm.key" (list . "pod-type-annotation" "katalyst.kubewharf.io/pod_type"))
      (include "qrm.key" (list . "pod-type-annotation-fallback" "kubernetes.io/resource-type"))
      (include "qrm.key" (list . "main-container-annotation" "kubernetes.io/main-container-name")) }}
  {{- if . }}{{ $keys = append $keys . }}{{ end }}
{{- end }}
{{- range $config | dig "implicit-resources" list }}
  {{- with .annotation }}{{ $keys = append $keys . }}{{ end }}
{{- end }}
{{- range $plugin := list "cpu" "memory" "nic" }}
  {{- range (($config.plugins | default dict) | dig $plugin dict | default dict).rules }}
    {{- $select := .select | default dict }}
    {{- $keys = concat $keys (keys ($select.label | default dict)) (keys ($select.annotation | default dict)) }}
  {{- end }}
{{- end }}
{{- range (($config.plugins | default dict) | dig "cpu" dict | default dict).pools }}
  {{- $by := toString (dig "instances" "by" "" (. | default dict)) }}
  {{- if hasPrefix "label:" $by }}{{ $keys = append $keys (trimPrefix "label:" $by) }}{{ end }}
{{- end }}
{{- uniq $keys | sortAlpha | toYaml }}
{{- end }}

{{- /*
A regular expression for the annotations that qrmd and qrm-scheduler read by their domain: drivers', classes' and those of
custom resources. A new key of these domains needs no change here.
*/ -}}
{{- define "qrm.podKeyPattern" -}}
^([^/]+[.])?qrm[.]io/|^[^/]+[.]resources[.]([^/]+[.])?kubernetes[.]io/
{{- end }}

{{- /* The rules of permissions, followed by qrmd's default rules; names of `everything` are filled in. */ -}}
{{- define "qrm.permissions" -}}
{{- $rules := (include "qrm.config" . | fromYaml) | dig "permissions" list }}
{{- $rules = append $rules (dict "namespaces" (list "kube-system") "allow" (list "everything")) }}
{{- $rules = append $rules (dict "namespaces" (list "*") "allow" (list "own-cpus" "numa-nodes" "network-namespaces") "pools" (list "*") "roles" (list "*")) }}
{{- $filled := list }}
{{- range $rule := $rules }}
  {{- $names := has "everything" ($rule.allow | default list) | ternary (list "*") list }}
  {{- $whole := dict "namespaces" $rule.namespaces "allow" ($rule.allow | default list) }}
  {{- /* An empty list allows nothing, also beside everything. */ -}}
  {{- range $key := list "pools" "roles" "classes" "drivers" }}
    {{- $_ := set $whole $key (hasKey $rule $key | ternary (get $rule $key | default list) $names) }}
  {{- end }}
  {{- $filled = append $filled $whole }}
{{- end }}
{{- toYaml $filled }}
{{- end }}

{{- /*
A regular expression that matches any of the globs: a star matches any text except a quote, because pools are part of
JSON; empty for all names.
*/ -}}
{{- define "qrm.pattern" -}}
{{- $parts := list }}
{{- range . }}{{ $parts = append $parts (regexQuoteMeta (toString .) | replace "\\*" "[^\"]*") }}{{ end }}
{{- if has "*" . | not }}{{ printf "(%s)" (join "|" $parts) }}{{ end }}
{{- end }}

{{- /* The types of classes that the configuration has, as a mapping to their rules; none while they are switched off. */ -}}
{{- define "qrm.classTypes" -}}
{{- $config := include "qrm.config" . | fromYaml }}
{{- $types := dict }}
{{- if eq (toString (get $config "qos-classes")) "true" }}
  {{- range $type, $rules := $config | dig "class-types" dict }}{{ $_ := set $types $type ($rules | default dict) }}{{ end }}
{{- end }}
{{- toYaml $types }}
{{- end }}

{{- /* CEL for the compute drivers that are open to the request's namespace by their own rules. */ -}}
{{- define "qrm.openDrivers" -}}
[]
{{- range $driver, $rules := (include "qrm.config" . | fromYaml) | dig "compute-drivers" dict }}
  {{- with ($rules | default dict) | dig "namespaces" list }} + (request.namespace.matches({{ printf "^%s$" (include "qrm.pattern" . | default ".*") | toJson }}) ? [{{ $driver | toJson }}] : []){{ end }}
{{- end }}
{{- end }}

{{- /*
CEL for whether qrmd skips the pod, so that it gets nothing of what it asks for, by (list RULES SKIP-ANNOTATION ROOT). As
qrmd decides it.
*/ -}}
{{- define "qrm.skipped" -}}
{{- $config := include "qrm.config" (index . 2) | fromYaml }}
{{- $daemonSets := or (not (hasKey $config "skip-daemonset-pods")) (eq (toString (get $config "skip-daemonset-pods")) "true") -}}
(variables.level != 'system_cores' && request.namespace in {{ $config | dig "skip-namespaces" (list "kube-system") | toJson }}) ||
(variables.rule in {{ include "qrm.allowing" (list (index . 0) "opt-out") }} && (variables.optsOut ||
object.spec.?priorityClassName.orValue('') in {{ $config | dig "skip-priority-classes" (list "system-node-critical" "system-cluster-critical") | toJson }}
{{- if $daemonSets }} || (variables.level != 'system_cores' &&
object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'DaemonSet' && o.?controller.orValue(false))){{ end }}))
{{- end }}

{{- /* CEL for the classes, as TYPE/CLASS, that are open to the request's namespace by their own rules, by the types. */ -}}
{{- define "qrm.openClasses" -}}
[]
{{- range $type, $rules := . }}
  {{- range $class, $rule := $rules | dig "classes" dict }}
    {{- $rule = $rule | default dict }}
    {{- $rights := list }}
    {{- with $rule | dig "namespaces" list }}
      {{- $rights = append $rights (printf "request.namespace.matches(%s)" (printf "^%s$" (include "qrm.pattern" . | default ".*") | toJson)) }}
    {{- end }}
    {{- with get $rule "service-accounts" }}
      {{- $rights = append $rights (printf "(request.namespace + '/' + object.spec.?serviceAccountName.orValue('default')).matches(%s)" (printf "^%s$" (include "qrm.pattern" .) | toJson)) }}
    {{- end }}
    {{- range get $rule "namespace-labels" | default list }}
      {{- $parts := splitn "=" 2 . }}
      {{- $rights = append $rights (printf "namespaceObject.metadata.?labels[?%s].orValue('') == %s" (toJson $parts._0) (toJson $parts._1)) }}
    {{- end }}
    {{- if $rights }} + ({{ join " || " $rights }} ? [{{ printf "%s/%s" $type $class | toJson }}] : []){{ end }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Fails where only a policy of the chart checks what CONFIG allows or qrmd may write, by (list ROOT VERSION WHAT). */ -}}
{{- define "qrm.needPolicies" -}}
{{- $root := index . 0 }}
{{- if not (and $root.Values.admissionPolicy.enabled (has "Deny" $root.Values.admissionPolicy.validationActions) (semverCompare (printf ">=%s-0" (index . 1)) $root.Capabilities.KubeVersion.Version)) }}
{{- fail (printf "%s in config: only the chart's admission policies check this; use Kubernetes %s or newer with admissionPolicy.enabled and the action Deny, or remove it" (index . 2) (index . 1)) }}
{{- end }}
{{- end }}

{{- /*
The types with classes that are published as extended resources, by (list ROOT TYPES): [{type, domain, classes}]. Only the
configuration is known here: not the capacity that a plugin has for its classes. Of pods as a whole, no container asks.
*/ -}}
{{- define "qrm.countedClasses" -}}
{{- $publish := (include "qrm.config" (index . 0) | fromYaml) | dig "publish" list }}
{{- $counted := list }}
{{- range $type, $rules := index . 1 }}
  {{- $classes := list }}
  {{- range $class, $rule := $rules | dig "classes" dict }}
    {{- if ($rule | default dict).capacity }}{{ $classes = append $classes $class }}{{ end }}
  {{- end }}
  {{- if and $classes (has "class-resources" $publish) (not (has $type (list "memory-protection" "io-latency"))) }}
    {{- $domain := contains "." $type | ternary $type (printf "%s.qrm.io" $type) }}
    {{- $counted = append $counted (dict "type" $type "domain" $domain "classes" (sortAlpha $classes)) }}
  {{- end }}
{{- end }}
{{- toYaml $counted }}
{{- end }}

{{- /* Whether the pods of the release's namespace may have what WORD says, by (list $ WORD). */ -}}
{{- define "qrm.mayHave" -}}
{{- $root := index . 0 }}
{{- $word := index . 1 }}
{{- $decided := false }}
{{- range include "qrm.permissions" $root | fromYamlArray }}
  {{- if and (not $decided) (regexMatch (printf "^%s$" (include "qrm.pattern" .namespaces | default ".*")) $root.Release.Namespace) }}
    {{- $decided = true }}
    {{- if or (has $word .allow) (has "everything" .allow) }}yes{{ end }}
  {{- end }}
{{- end }}
{{- end }}

{{- /*
The annotation of qrmd's own pod: it asks for the reserved CPUs, if any are configured, else for nothing. None in a
namespace that qrmd skips.
*/ -}}
{{- define "qrm.ownAnnotation" -}}
{{- $config := include "qrm.config" . | fromYaml }}
{{- $cpu := (($config.plugins | default dict).cpu) | default dict }}
{{- $static := kindIs "map" $cpu.static | ternary $cpu.static dict }}
{{- $reserved := or (get $cpu "reserved-cpus") (get $static "reserved-cpu-count") | empty | not }}
{{- $key := include "qrm.key" (list . "skip-annotation" "katalyst.kubewharf.io/skip_qrm_admit") }}
{{- if and $reserved (include "qrm.mayHave" (list . "reserved-cpus")) }}
katalyst.kubewharf.io/qos_level: system_cores
{{- else if and $key (not $reserved) (include "qrm.mayHave" (list . "opt-out")) }}
{{ $key }}: "true"
{{- else if or $reserved (not (has .Release.Namespace ($config | dig "skip-namespaces" (list "kube-system")))) }}
{{- fail (printf "cannot keep qrmd's own pod on the system's CPUs: permissions in config do not allow it to namespace %s; add {namespaces: [%s], allow: [opt-out, reserved-cpus]} to them, or install into kube-system" .Release.Namespace .Release.Namespace) }}
{{- end }}
{{- end }}

{{- /* CEL for the number of the first of the rules that names the request's namespace. The last one names all. */ -}}
{{- define "qrm.ruleExpression" -}}
{{- range $number, $rule := initial . }}request.namespace.matches({{ printf "^%s$" (include "qrm.pattern" $rule.namespaces | default ".*") | toJson }}) ? {{ $number }} : {{ end }}
{{- len (initial .) }}
{{- end }}

{{- /* CEL for the numbers of the rules, by (list RULES WORD), that allow what the word says. */ -}}
{{- define "qrm.allowing" -}}
{{- $word := index . 1 }}
{{- $numbers := list }}
{{- range $number, $rule := index . 0 }}
  {{- if or (has $word $rule.allow) (has "everything" $rule.allow) }}{{ $numbers = append $numbers $number }}{{ end }}
{{- end }}
{{- toJson $numbers }}
{{- end }}

{{- /* CEL for a list of patterns, one for each of the rules' lists of names, by (list RULES KEY). */ -}}
{{- define "qrm.patterns" -}}
{{- $key := index . 1 }}
{{- $patterns := list }}
{{- range index . 0 }}{{ $patterns = append $patterns (include "qrm.pattern" (get . $key)) }}{{ end }}
{{- toJson $patterns }}
{{- end }}
