{{- define "atelier.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "atelier.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "atelier.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "atelier.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "atelier.selector" -}}
app.kubernetes.io/name: {{ include "atelier.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "atelier.labels" -}}
{{ include "atelier.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "atelier.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{/* What every pod has: a user that is not root, no rights, a root that cannot be written. */}}
{{- define "atelier.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .Values.runAsUser }}
  runAsGroup: {{ .Values.runAsUser }}
  fsGroup: {{ .Values.runAsUser }}
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "atelier.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* The secrets that all processes share, each by reference. The admin token, which may do everything, is for those alone that answer operators. */}}
{{- define "atelier.secretEnv" -}}
{{- $names := dict "database" "ATELIER_DATABASE" "secretKey" "ATELIER_SECRET_KEY" "blobsKeys" "ATELIER_BLOBS_KEYS" "token" "ATELIER_TOKEN" "signingKeys" "ATELIER_SIGNING_KEYS" "bus" "ATELIER_BUS" -}}
{{- range $key, $variable := $names }}
{{- with index $.Values.secrets.keys $key }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $.Values.secrets.existingSecret }}, key: {{ . }} } }
{{- end }}
{{- end }}
{{- end }}

{{- define "atelier.adminEnv" -}}
{{- with .Values.secrets.keys.adminToken }}
- name: ATELIER_ADMIN_TOKEN
  valueFrom: { secretKeyRef: { name: {{ $.Values.secrets.existingSecret }}, key: {{ . }} } }
{{- end }}
{{- end }}

{{/* Settings that are files: the config file, and the keys of providers. */}}
{{- define "atelier.fileEnv" -}}
{{- if .Values.config }}
- name: ATELIER_CONFIG
  value: /etc/atelier/config/atelier.config.json
{{- end }}
{{- if .Values.secrets.keys.providers }}
- name: ATELIER_PROVIDERS
  value: /etc/atelier/secrets/providers.json
{{- end }}
{{- end }}

{{- define "atelier.fileMounts" -}}
- { name: data, mountPath: /data }
- { name: tmp, mountPath: /tmp }
{{- if .Values.config }}
- { name: config, mountPath: /etc/atelier/config, readOnly: true }
{{- end }}
{{- if .Values.secrets.keys.providers }}
- { name: secrets, mountPath: /etc/atelier/secrets, readOnly: true }
{{- end }}
{{- end }}

{{- define "atelier.fileVolumes" -}}
- name: tmp
  emptyDir: {}
{{- if .Values.config }}
- name: config
  configMap: { name: {{ include "atelier.fullname" . }}-config }
{{- end }}
{{- with .Values.secrets.keys.providers }}
- name: secrets
  secret:
    secretName: {{ $.Values.secrets.existingSecret }}
    items: [{ key: {{ . }}, path: providers.json }]
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Pods are replaced when the config file changed. */}}
{{- define "atelier.podAnnotations" -}}
{{- $root := index . 0 }}
{{- with $root.Values.config }}
atelier/config: {{ toJson . | sha256sum | trunc 16 | quote }}
{{- end }}
{{- with index . 1 }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Plain settings, later ones over earlier ones. Call with a list of maps. */}}
{{- define "atelier.settingEnv" -}}
{{- $all := dict -}}
{{- range . }}{{ $all = mergeOverwrite $all (deepCopy .) }}{{ end }}
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Not empty where processes dial each other on the internal port. With a bus of NATS they do not. */}}
{{- define "atelier.dials" -}}
{{- if not (or .Values.secrets.keys.bus (hasKey .Values.settings "ATELIER_BUS")) }}yes{{ end }}
{{- end }}

{{/* Where other processes reach this one. */}}
{{- define "atelier.dialEnv" -}}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
- name: ATELIER_ADVERTISE
  value: $(POD_IP)
- name: ATELIER_INTERNAL_PORT
  value: {{ .Values.internalPort | quote }}
{{- end }}

{{/* Health of a container. Alive never asks the database: its outage must not restart anything. */}}
{{- define "atelier.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{/* One entry of workers, with the defaults filled in. Call with a list: root, entry. */}}
{{- define "atelier.worker" -}}
{{- $root := index . 0 -}}
{{- $own := deepCopy (index . 1) -}}
{{- $worker := mergeOverwrite (deepCopy $root.Values.workerDefaults) $own -}}
{{- /* A worker with servers of its own does not want the built-in engine because the defaults say so. */ -}}
{{- if and (hasKey (default dict $own.settings) "ATELIER_COMFYUI") (not (hasKey $own.settings "ATELIER_EMBEDDED")) }}{{ $_ := unset $worker.settings "ATELIER_EMBEDDED" }}{{ end }}
{{- toYaml $worker }}
{{- end }}

{{/* Metrics of processes that answer cover all accounts: they need the admin token, or the token of the kind local. Call with a list: root, key. */}}
{{- define "atelier.metricsToken" -}}
{{- $root := index . 0 }}
{{- with index . 1 }}
authorization:
  credentials: { name: {{ $root.Values.secrets.existingSecret }}, key: {{ . }} }
{{- end }}
{{- end }}

{{/* Where pods may connect to: names, each other, and ports; those too that addresses among the settings name. Call with a list: root, names of ports, texts with addresses. */}}
{{- define "atelier.egress" -}}
{{- $root := index . 0 -}}
{{- $egress := $root.Values.networkPolicy.egress -}}
- ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
{{- if and (has "bus" (index . 1)) (include "atelier.dials" $root) }}
- ports: [{ port: {{ $root.Values.internalPort }} }]
  to:
    - podSelector:
        matchLabels: {{ include "atelier.selector" $root | nindent 10 }}
{{- end }}
{{- $ports := list }}
{{- range index . 1 }}{{ $ports = concat $ports (index $egress.ports .) }}{{ end }}
{{- range index . 2 }}{{ range regexFindAll "//[^/,&?]+:[0-9]+" (toString .) -1 }}{{ $ports = append $ports (regexFind "[0-9]+$" .) }}{{ end }}{{ end }}
- ports:
    {{- range $ports | join "," | splitList "," | uniq }}
    - { port: {{ . }} }
    {{- end }}
{{- with $egress.extra }}
{{ toYaml . }}
{{- end }}
{{- end }}
