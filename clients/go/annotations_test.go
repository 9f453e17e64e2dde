package clients

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// A webhook that adds data to config maps, with audit annotations, one of them with an invalid key.
func annotator(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true,
		AuditAnnotations: map[string]string{"seen": "yes", "no key": "x", "a/b": "x"}}
	if strings.HasSuffix(request.URL.Path, "/mutate") {
		patchType := admissionv1.PatchTypeJSONPatch
		review.Response.PatchType, review.Response.Patch = &patchType, []byte(`[{"op":"add","path":"/data","value":{"a":"<b>"}}]`)
	}
	_ = json.NewEncoder(w).Encode(review)
}

// The objects of the test; webhooks are in the order of their indexes.
func annotating(url, authority string) map[string]string {
	hook := func(name, path, more string) string {
		return fmt.Sprintf(`{"name":"%s.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Ignore","timeoutSeconds":5,
			"clientConfig":{"url":"%s","caBundle":"%s"},"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],
			"namespaceSelector":{"matchLabels":{"test":"annotations"}}%s}`, name, path, authority, more)
	}
	broken, never := "https://127.0.0.1:1/", `,"matchConditions":[{"name":"never","expression":"false"}]`
	hooks := func(path string) string {
		return strings.Join([]string{hook("never", url+path, never), hook("broken", broken, ""), hook("works", url+path, "")}, ",")
	}
	base := "/apis/admissionregistration.k8s.io/v1/"
	return map[string]string{
		"/api/v1/namespaces": `{"metadata":{"name":"annotations","labels":{"test":"annotations","pod-security.kubernetes.io/enforce":"baseline",
			"pod-security.kubernetes.io/audit":"restricted","pod-security.kubernetes.io/audit-version":"v1.30"}}}`,
		base + "mutatingwebhookconfigurations":   `{"metadata":{"name":"m"},"webhooks":[` + hooks("/mutate") + `]}`,
		base + "validatingwebhookconfigurations": `{"metadata":{"name":"v"},"webhooks":[` + hooks("/validate") + `]}`,
		base + "validatingadmissionpolicies": `{"metadata":{"name":"p.example.com"},"spec":{
			"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]},
			"validations":[{"expression":"true"},{"expression":"size(object.metadata.name) < 3"}],
			"auditAnnotations":[{"key":"name","valueExpression":"' it is ' + object.metadata.name"},{"key":"none","valueExpression":"null"}]}}`,
		base + "validatingadmissionpolicybindings": `{"metadata":{"name":"b"},"spec":{"policyName":"p.example.com","validationActions":["Warn","Audit"],
			"matchResources":{"namespaceSelector":{"matchLabels":{"test":"annotations"}}}}}`,
	}
}

// After test/integration/apiserver/admissionwebhook, test/integration/apiserver/cel and test/integration/auth:
// the audit annotations of admission, at both levels.
func TestAuditOfAdmission(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(annotator))
	t.Cleanup(server.Close)
	directory := t.TempDir()
	policy, file := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, resources: [{group: "", resources: [configmaps]}], namespaces: [plain]}
- {level: Request, resources: [{group: "", resources: [configmaps, pods]}]}
`)
	config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	client := kubernetes.NewForConfigOrDie(config)
	create := func(client *kubernetes.Clientset, path, object string) error {
		return client.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(t.Context()).Error()
	}
	for path, object := range annotating(server.URL, base64.StdEncoding.EncodeToString(authorityOf(server))) {
		if err := create(client, path, object); err != nil {
			t.Fatal(path, err)
		}
	}
	configMaps, pods := "/api/v1/namespaces/annotations/configmaps", "/api/v1/namespaces/annotations/pods"
	number := 0
	latest := func(path string, client *kubernetes.Clientset, object string) map[string]string {
		number++
		uri := fmt.Sprintf("%s?fieldManager=m%d", path, number)
		err := client.RESTClient().Post().RequestURI(uri).SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(t.Context()).Error()
		t.Log(uri, err)
		var found []auditEvent
		eventually(t, "the event is in the log", func() bool {
			found = eventsOf(t, file, fmt.Sprintf("fieldManager=m%d", number))
			return len(found) == 1
		})
		return found[0].Annotations
	}
	named := func() string { return fmt.Sprintf(`{"metadata":{"name":"map-%d"}}`, number+1) }
	eventually(t, "policy and webhooks count", func() bool {
		annotations := latest(configMaps, client, named())
		return annotations["p.example.com/name"] != "" && annotations["works.example.com/seen"] != "" &&
			annotations["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"] != ""
	})

	always := map[string]string{
		"authorization.k8s.io/decision":                                   "allow",
		"failed-open.mutation.webhook.admission.k8s.io/round_0_index_1":   "broken.example.com",
		"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "broken.example.com",
		"mutation.webhook.admission.k8s.io/round_0_index_1":               `{"configuration":"m","webhook":"broken.example.com","mutated":false}`,
		"mutation.webhook.admission.k8s.io/round_0_index_2":               `{"configuration":"m","webhook":"works.example.com","mutated":true}`,
		"works.example.com/seen":                                          "yes",
	}
	check := func(annotations, want map[string]string) {
		t.Helper()
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return key == "authorization.k8s.io/reason" || strings.HasPrefix(key, "apiserver.latency.k8s.io/")
		})
		if !maps.Equal(annotations, want) {
			t.Errorf("got %v\nwant %v", annotations, want)
		}
	}
	want := maps.Clone(always)
	name := fmt.Sprintf("map-%d", number+1)
	want["p.example.com/name"] = "it is " + name
	want["validation.policy.admission.k8s.io/validation_failure"] = `[{"message":"failed expression: size(object.metadata.name) \u003c 3","policy":"p.example.com","binding":"b","expressionIndex":1,"validationActions":["Warn","Audit"]}]`
	patch := `{"configuration":"m","webhook":"works.example.com","patch":[{"op":"add","path":"/data","value":{"a":"\u003cb\u003e"}}],"patchType":"JSONPatch"}`
	want["patch.webhook.admission.k8s.io/round_0_index_2"] = patch
	check(latest(configMaps, client, named()), want)

	if err := create(client, "/api/v1/namespaces", `{"metadata":{"name":"plain","labels":{"test":"annotations"}}}`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is known", func() bool {
		return latest("/api/v1/namespaces/plain/configmaps", client, named())["p.example.com/name"] != ""
	})
	always["p.example.com/name"] = fmt.Sprintf("it is map-%d", number+1)
	always["validation.policy.admission.k8s.io/validation_failure"] = want["validation.policy.admission.k8s.io/validation_failure"]
	check(latest("/api/v1/namespaces/plain/configmaps", client, named()), always)

	if err := create(client, "/api/v1/namespaces/annotations/serviceaccounts", `{"metadata":{"name":"default"}}`); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pod := `{"metadata":{"name":"%s"},"spec":{"hostNetwork":%v,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`
	violations := `would violate PodSecurity "restricted:v1.30": %sallowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
	for _, row := range []struct {
		hostNetwork bool
		first       string
	}{{false, ""}, {true, "host namespaces (hostNetwork=true), "}} {
		annotations := latest(pods, client, fmt.Sprintf(pod, fmt.Sprintf("pod-%v", row.hostNetwork), row.hostNetwork))
		check(annotations, map[string]string{
			"authorization.k8s.io/decision":               "allow",
			"pod-security.kubernetes.io/enforce-policy":   "baseline:latest",
			"pod-security.kubernetes.io/audit-violations": fmt.Sprintf(violations, row.first),
		})
	}
}
