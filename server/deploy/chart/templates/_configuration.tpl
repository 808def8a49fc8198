{{- define "dagbridge.configuration" -}}
{{- $cluster := dict "namespace" (first .Values.namespaces) "namespaces" (rest .Values.namespaces) -}}
{{- if .Values.pushOutputs }}{{ $_ := set $cluster "url" (printf "https://%s.%s:7071" .Release.Name .Release.Namespace) }}{{ end -}}
listen:
  grpc: "0.0.0.0:7070"
  http: "0.0.0.0:7071"
  tls: {cert: /tls/tls.crt, key: /tls/tls.key}
data: /data
auth:
  tokens: {{- if not .Values.tokens }}{{ fail "tokens: who may call? A name and the SHA-256 of a token each" }}{{ end }}{{ toYaml .Values.tokens | nindent 4 }}
clusters:
  - name: k8s
    kubernetes: {{- mergeOverwrite $cluster .Values.kubernetes | toYaml | nindent 6 }}
{{- end }}
