package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// An authorization webhook that allows everything, and at first hangs when it is called for anything but the
// request's own verb.
type hangingRuler struct {
	*httptest.Server
	mutex sync.Mutex
	open  int
	most  int
	over  chan struct{}
}

func (r *hangingRuler) hangs(spec authorizationv1.SubjectAccessReviewSpec) bool {
	resource := spec.ResourceAttributes
	if resource == nil {
		return false
	}
	return spec.User == "hanging" || resource.Verb == "impersonate" || resource.Verb == "escalate" || resource.Verb == "ponder" || resource.Subresource == "finalizers"
}

func (r *hangingRuler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.hangs(review.Spec) {
		r.count(1)
		<-r.over
		r.count(-1)
	}
	review.Status.Allowed = true
	_ = json.NewEncoder(w).Encode(review)
}

func (r *hangingRuler) count(more int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.open += more
	r.most = max(r.most, r.open)
}

// The number of calls that hung at the same time.
func (r *hangingRuler) hung() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.most
}

const hangingConfiguration = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hanging.example.com
  webhook:
    timeout: 30s
    authorizedTTL: 300s
    unauthorizedTTL: 300s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
- {type: RBAC, name: rbac}
`

// Creates a policy for config maps that uses the authorizer.
func ponder(t *testing.T, client kubernetes.Interface) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "ponder"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!has(object.data) || authorizer.group('').resource('pods').name(object.metadata.name).check('ponder').allowed()",
			}},
		},
	}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ponder"},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "ponder", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Requests for which the webhook is called more than once.
func askMore(t *testing.T, config *rest.Config) map[string]func(number int) error {
	other := rest.CopyConfig(config)
	other.Impersonate.UserName = "other"
	client, impersonating := kubernetes.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(other)
	ctx, always := t.Context(), true
	named := func(kind string, number int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", kind, number)}
	}
	return map[string]func(int) error{
		"impersonation": func(number int) error {
			_, err := impersonating.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: named("impersonated", number)}, metav1.CreateOptions{})
			return err
		},
		"a review": func(number int) error {
			spec := authorizationv1.SubjectAccessReviewSpec{User: "hanging", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Name: fmt.Sprint(number)}}
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err == nil && !review.Status.Allowed {
				err = fmt.Errorf("%+v", review.Status)
			}
			return err
		},
		"a role": func(number int) error {
			rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
			_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: named("role", number), Rules: rules}, metav1.CreateOptions{})
			return err
		},
		"an expression": func(number int) error {
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: named("pondered", number), Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
			return err
		},
		"an owner": func(number int) error {
			owned := named("owned", number)
			owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "u", BlockOwnerDeletion: &always}}
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: owned}, metav1.CreateOptions{})
			return err
		},
	}
}

// A hanging webhook delays only the requests that it is called for, however many they are.
func TestAuthorizationWebhookThatHangs(t *testing.T) {
	webhook, directory := &hangingRuler{over: make(chan struct{})}, t.TempDir()
	webhook.Server = httptest.NewTLSServer(webhook)
	t.Cleanup(webhook.Close)
	release := sync.OnceFunc(func() { close(webhook.over) })
	t.Cleanup(release)
	file, tokens := filepath.Join(directory, "authorization.yaml"), filepath.Join(directory, "tokens.csv")
	writeFile(t, file, fmt.Sprintf(hangingConfiguration, kubeconfigOf(t, webhook.Server, filepath.Join(directory, "webhook"))))
	writeFile(t, tokens, "of-jane,jane,1\nof-joe,joe,2\n")
	config := serve(t, "--authorization-config="+file, "--token-auth-file="+tokens, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--max-requests-inflight=4000", "--max-mutating-requests-inflight=4000")
	config.QPS = -1
	holder := func(token string) *rest.Config {
		config := rest.AnonymousClientConfig(config)
		config.BearerToken, config.QPS = token, -1
		return config
	}
	masters, cached := kubernetes.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(holder("of-joe"))
	get := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		return err
	}
	if err := get(cached); err != nil {
		t.Fatal(err)
	}
	ponder(t, masters)

	const each = 200
	ways := askMore(t, holder("of-jane"))
	var all sync.WaitGroup
	for what, ask := range ways {
		for number := range each {
			all.Go(func() {
				if err := ask(number); err != nil {
					t.Error(what, number, err)
				}
			})
		}
	}
	eventually(t, "the webhook hangs", func() bool { return webhook.hung() >= 500 })
	for name, client := range map[string]kubernetes.Interface{"system:masters": masters, "a cached user": cached} {
		for range 20 {
			began := time.Now()
			if err := get(client); err != nil {
				t.Error(name, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s waited %s", name, took)
			}
		}
	}
	release()
	all.Wait()
}
