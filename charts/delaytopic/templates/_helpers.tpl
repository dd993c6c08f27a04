{{- define "delaytopic.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Of all objects: "delaytopic" in a release of that name, else "<release>-delaytopic". */ -}}
{{- define "delaytopic.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "delaytopic.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Of objects without a namespace: two releases must not share them. */ -}}
{{- define "delaytopic.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "delaytopic.fullname" .) -}}
{{- end -}}

{{- define "delaytopic.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "delaytopic.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels of every object; call with a dict of root and component. */ -}}
{{- define "delaytopic.labels" -}}
{{- $given := dict -}}
{{- range $name, $value := .root.Values.commonLabels }}{{- $_ := set $given $name ($value | toString) }}{{- end -}}
{{- $own := dict
      "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
      "app.kubernetes.io/version" .root.Chart.AppVersion
      "app.kubernetes.io/managed-by" .root.Release.Service
      "app.kubernetes.io/part-of" "delaytopic" -}}
{{- $selector := include "delaytopic.selector" . | fromYaml -}}
{{- mergeOverwrite $given $own $selector | toYaml -}}
{{- end -}}

{{- define "delaytopic.selector" -}}
app.kubernetes.io/name: {{ include "delaytopic.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* An image's name; call with a dict of root and image. */ -}}
{{- define "delaytopic.image" -}}
{{- if eq .image.tag "latest" -}}
{{- fail (printf "the tag of image %s is latest: name a version, or a digest, so that all pods run the same" .image.repository) -}}
{{- end -}}
{{- $repository := .image.repository -}}
{{- with .root.Values.global.imageRegistry }}{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Namespaces where relays run: the release's own first, each once. */ -}}
{{- define "delaytopic.relayNamespaces" -}}
{{- prepend .Values.relayNamespaces .Release.Namespace | uniq | toYaml -}}
{{- end -}}

{{- /* Namespaces whose Secrets are read: where relays run, and those that are named. */ -}}
{{- define "delaytopic.secretNamespaces" -}}
{{- concat (list .Release.Namespace) .Values.relayNamespaces .Values.secretNamespaces | uniq | toYaml -}}
{{- end -}}

{{- /* Namespaces whose relays reach the Redis for trying: those of the default class, and those that are named. */ -}}
{{- define "delaytopic.redisNamespaces" -}}
{{- $ofClass := default .Release.Namespace .Values.defaultClass.spec.relayNamespace -}}
{{- concat (list .Release.Namespace $ofClass) .Values.redis.relayNamespaces | uniq | toYaml -}}
{{- end -}}

{{- /* Rules of one scope of files/access.yaml; call with a dict of root and scope. */ -}}
{{- define "delaytopic.rules" -}}
{{- $rules := list -}}
{{- range .root.Files.Get "files/access.yaml" | fromYamlArray -}}
{{- if eq .scope $.scope -}}
{{- $rule := dict "apiGroups" (list .apiGroup) "resources" .resources "verbs" .verbs -}}
{{- with .names }}{{- $_ := set $rule "resourceNames" . }}{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- $rules | toYaml -}}
{{- end -}}

{{- /* The Secret that the operator makes for the gateway, unless the values name one. */ -}}
{{- define "delaytopic.relayTokenSecret" -}}
{{- default (printf "%s-relay-token" (include "delaytopic.fullname" .)) .Values.gateway.relayToken.secret -}}
{{- end -}}

{{- /* Where pods run, and which go first where nodes are full; call with a dict of values and selector, a text. */ -}}
{{- define "delaytopic.placement" -}}
{{- $selector := .selector -}}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- $selector | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- /*
Rules of a NetworkPolicy for what goes out; call with a dict of root and policy, the values. Addresses cannot be told:
brokers and API servers may be anywhere. Rules see the pod behind a Service: OpenShift's name servers listen on 5353.
*/ -}}
{{- define "delaytopic.egress" -}}
{{- if .policy.egress -}}
{{- toYaml .policy.egress -}}
{{- else -}}
- ports:
    {{- range list 53 5353 }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
- ports:
    {{- range concat .policy.egressPorts (.root.Values.operator.relayEgressPorts | default list) | uniq }}
    - {protocol: TCP, port: {{ int . }}}
    {{- end }}
{{- end -}}
{{- end -}}

{{- /* OperatorConfig: what follows from the release, and what the values say of it. */ -}}
{{- define "delaytopic.operatorConfig" -}}
{{- $images := dict
      "relay" (include "delaytopic.image" (dict "root" . "image" .Values.relay.image))
      "audit" (include "delaytopic.image" (dict "root" . "image" .Values.audit.image)) -}}
{{- if ne .Values.image.pullPolicy "IfNotPresent" }}{{- $_ := set $images "pullPolicy" .Values.image.pullPolicy }}{{- end -}}
{{- range .Values.imagePullSecrets }}{{- $_ := set $images "pullSecrets" (append ($images.pullSecrets | default list) .name) }}{{- end -}}
{{- $config := dict
      "apiVersion" "delaytopic.dev/v1beta1"
      "kind" "OperatorConfig"
      "namespace" .Release.Namespace
      "operatorLabels" (include "delaytopic.selector" (dict "root" . "component" "operator") | fromYaml)
      "images" $images -}}
{{- with .Values.watchNamespaces }}{{- $_ := set $config "watchNamespaces" . }}{{- end -}}
{{- if not .Values.relaysEverywhere }}{{- $_ := set $config "relayNamespaces" .Values.relayNamespaces }}{{- end -}}
{{- if .Values.gateway.enabled }}
{{- $gateway := dict "labels" (include "delaytopic.selector" (dict "root" . "component" "gateway") | fromYaml) -}}
{{- $token := .Values.gateway.relayToken -}}
{{- if $token.secret }}
{{- $problem := "gateway.relayToken.sha256: give the SHA-256 of the token in gateway.relayToken.secret" -}}
{{- $_ := set $gateway "tokenSha256" (required $problem $token.sha256) -}}
{{- else }}
{{- $_ := set $gateway "tokenSecret" (dict "name" (include "delaytopic.relayTokenSecret" .) "key" $token.key) -}}
{{- end }}
{{- $_ := set $config "gateway" $gateway -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.operator) $config | toYaml -}}
{{- end -}}
