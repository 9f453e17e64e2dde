package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Authorization webhooks in the order of the configuration, with the number of calls of each.
type webhookChain struct {
	mutex sync.Mutex
	asked map[string]int
	last  *authorizationv1.ResourceAttributes
}

// Returns the number of calls of each webhook since the last call of this method.
func (c *webhookChain) take() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	asked := c.asked
	c.asked = map[string]int{}
	return asked
}

// Starts a webhook and returns its kubeconfig.
func (c *webhookChain) listen(t *testing.T, name string, rule func(w http.ResponseWriter, review *authorizationv1.SubjectAccessReview) bool) string {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mutex.Lock()
		c.asked[name]++
		c.last = review.Spec.ResourceAttributes
		c.mutex.Unlock()
		if rule(w, &review) {
			_ = json.NewEncoder(w).Encode(review)
		}
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server, filepath.Join(t.TempDir(), name))
}

const (
	hasResource = "has(request.resourceAttributes)"
	toFail      = `request.resourceAttributes.namespace == "fail"`
)

// A webhook of an AuthorizationConfiguration.
func chained(name, policy, timeout, kubeconfig string, conditions ...string) string {
	text := fmt.Sprintf("- type: Webhook\n  name: %s.example.com\n  webhook: {timeout: %s, failurePolicy: %s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, "+
		"authorizedTTL: 1ms, unauthorizedTTL: 1ms, connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}", name, timeout, policy, kubeconfig)
	if len(conditions) > 0 {
		expressions := ""
		for _, condition := range conditions {
			expressions += fmt.Sprintf("{expression: '%s'}, ", condition)
		}
		text += ", matchConditions: [" + expressions + "]"
	}
	return text + "}\n"
}

// After test/integration/auth/authz_config_test.go: TestMultiWebhookAuthzConfig.
func TestAuthorizationByWebhooks(t *testing.T) {
	chain, file := &webhookChain{asked: map[string]int{}}, filepath.Join(t.TempDir(), "authorization.yaml")
	malformed := func(w http.ResponseWriter, _ *authorizationv1.SubjectAccessReview) bool {
		fmt.Fprint(w, "malformed response")
		return false
	}
	allows := func(_ http.ResponseWriter, review *authorizationv1.SubjectAccessReview) bool {
		review.Status.Allowed = true
		return true
	}
	head := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	writeFile(t, file, head+
		chained("error", "Deny", "5s", chain.listen(t, "error", malformed), hasResource, toFail, `request.resourceAttributes.name == "error"`)+
		// Without the first condition, requests without a resource are evaluation errors.
		chained("timeout", "Deny", "1s", chain.listen(t, "timeout", func(_ http.ResponseWriter, _ *authorizationv1.SubjectAccessReview) bool {
			time.Sleep(2 * time.Second)
			return true
		}), toFail, `request.resourceAttributes.name == "timeout"`)+
		chained("deny", "NoOpinion", "5s", chain.listen(t, "deny", func(_ http.ResponseWriter, review *authorizationv1.SubjectAccessReview) bool {
			review.Status.Denied, review.Status.Reason = true, "denied by webhook"
			return true
		}), hasResource, toFail)+
		chained("selector", "NoOpinion", "5s", chain.listen(t, "selector", func(_ http.ResponseWriter, review *authorizationv1.SubjectAccessReview) bool {
			if resource := review.Spec.ResourceAttributes; resource != nil && resource.LabelSelector != nil {
				for _, requirement := range resource.LabelSelector.Requirements {
					review.Status.Allowed = review.Status.Allowed || requirement.Key == "allow"
				}
			}
			return true
		}), `request.?resourceAttributes.labelSelector.requirements.orValue([]).exists(r, r.key=="testselector")`)+
		chained("noopinion", "Deny", "5s", chain.listen(t, "noopinion", func(http.ResponseWriter, *authorizationv1.SubjectAccessReview) bool { return true }))+
		chained("failopen", "NoOpinion", "5s", chain.listen(t, "failopen", malformed))+
		chained("allow", "Deny", "5s", chain.listen(t, "allow", allows)))
	config := serve(t, "--authorization-config="+file)
	client := kubernetes.NewForConfigOrDie(config)
	review := func(what string, spec authorizationv1.SubjectAccessReviewSpec, allowed bool, asked map[string]int) {
		t.Helper()
		spec.User = "alice"
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != allowed {
			t.Errorf("%s: %+v %v", what, review.Status, err)
		}
		if found := chain.take(); !reflect.DeepEqual(found, asked) {
			t.Errorf("%s: asked %v, not %v", what, found, asked)
		}
	}
	about := func(namespace, name string) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "configmaps", Namespace: namespace, Name: name}}
	}
	review("a malformed answer ends it", about("fail", "error"), false, map[string]int{"error": 1})
	review("a late answer ends it", about("fail", "timeout"), false, map[string]int{"timeout": 1})
	review("a denial ends it", about("fail", ""), false, map[string]int{"deny": 1})
	review("no opinion, and a failure that is open, pass on", about("allow", ""), true, map[string]int{"noopinion": 1, "failopen": 1, "allow": 1})
	review("a condition that fails denies", authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "list"}}, false, map[string]int{})

	// Selectors of requests are sorted; those of reviews keep their order, and raw selectors are
	// parsed.
	fields, labels := "spec.nodeName=mynode,metadata.name!=b,metadata.name!=a", "testselector in (b,a),allow=true"
	field := func(key string, operator metav1.FieldSelectorOperator, value string) metav1.FieldSelectorRequirement {
		return metav1.FieldSelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
	}
	label := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: "In", Values: values}
	}
	sorted := &authorizationv1.ResourceAttributes{
		FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			field("metadata.name", "NotIn", "a"), field("metadata.name", "NotIn", "b"), field("spec.nodeName", "In", "mynode")}},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{label("allow", "true"), label("testselector", "a", "b")}},
	}
	given := &authorizationv1.ResourceAttributes{
		FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			field("spec.nodeName", "In", "mynode"), field("metadata.name", "NotIn", "b"), field("metadata.name", "NotIn", "a")}},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{label("testselector", "b", "a"), label("allow", "true")}},
	}
	selectors := func(what string, want *authorizationv1.ResourceAttributes) {
		t.Helper()
		chain.mutex.Lock()
		defer chain.mutex.Unlock()
		if chain.last == nil || !reflect.DeepEqual(chain.last.FieldSelector, want.FieldSelector) || !reflect.DeepEqual(chain.last.LabelSelector, want.LabelSelector) {
			t.Errorf("%s: %+v", what, chain.last)
		}
	}
	alice := rest.CopyConfig(config)
	alice.Impersonate.UserName = "alice"
	if _, err := kubernetes.NewForConfigOrDie(alice).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: fields, LabelSelector: labels}); err != nil {
		t.Error(err)
	}
	selectors("a request", sorted)
	if found := chain.take(); !reflect.DeepEqual(found, map[string]int{"selector": 1}) {
		t.Error(found)
	}
	withUnknown := given.DeepCopy()
	withUnknown.FieldSelector.Requirements = append(withUnknown.FieldSelector.Requirements, field("x", "Other", "y"))
	withUnknown.LabelSelector.Requirements = append(withUnknown.LabelSelector.Requirements, metav1.LabelSelectorRequirement{Key: "x", Operator: "Other", Values: []string{"y"}})
	raw := &authorizationv1.ResourceAttributes{FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: fields}, LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: labels}}
	for what, row := range map[string][2]*authorizationv1.ResourceAttributes{"requirements": {withUnknown, given}, "a raw selector": {raw, sorted}} {
		resource := row[0].DeepCopy()
		resource.Verb, resource.Version, resource.Resource = "list", "v1", "pods"
		review(what, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: resource}, true, map[string]int{"selector": 1})
		selectors(what, row[1])
	}

	// An invalid configuration changes nothing; a valid one takes effect soon.
	writeFile(t, file, "apiVersion: apiserver.config.k8s.io")
	eventually(t, "a failure is counted", hasCounted(t, config, "apiserver_authorization_config_controller_automatic_reloads_total", `status="failure"`))
	review("the chain before", about("allow", ""), true, map[string]int{"noopinion": 1, "failopen": 1, "allow": 1})
	writeFile(t, file, head+chained("allowreloaded", "Deny", "5s", chain.listen(t, "allowreloaded", allows)))
	eventually(t, "a success is counted", hasCounted(t, config, "apiserver_authorization_config_controller_automatic_reloads_total", `status="success"`))
	review("the new chain", about("fail", "error"), true, map[string]int{"allowreloaded": 1})
}
