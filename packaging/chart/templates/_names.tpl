{{/* The name of all objects. It has at most 50 bytes, because labels of pods have it with a suffix. */}}
{{- define "pintle.name" -}}
{{- $name := contains "pintle" .Release.Name | ternary .Release.Name (printf "%s-pintle" .Release.Name) -}}
{{- if gt (len $name) 50 -}}
{{- $name = printf "%s-%s" (trunc 41 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{ $name }}
{{- end }}

{{/* The labels by which the service finds the pods. */}}
{{- define "pintle.selector" -}}
app.kubernetes.io/name: pintle
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pintle.labels" -}}
{{ include "pintle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The secret with the keys that replicas share. */}}
{{- define "pintle.pki" -}}
{{ .Values.pki.secretName | default (printf "%s-pki" (include "pintle.name" .)) }}
{{- end }}

{{/* The names by which clients in the cluster reach the server. */}}
{{- define "pintle.hosts" -}}
{{- $name := include "pintle.name" . -}}
{{ $name }},{{ $name }}.{{ .Release.Namespace }},{{ $name }}.{{ .Release.Namespace }}.svc,{{ $name }}.{{ .Release.Namespace }}.svc.cluster.local
{{- end }}
