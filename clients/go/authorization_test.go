package clients

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A webhook that decides by a function, and its requests.
type ruler struct {
	*httptest.Server
	mutex sync.Mutex
	asked []authorizationv1.SubjectAccessReviewSpec
	rule  func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int)
}

func (r *ruler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.APIVersion != "authorization.k8s.io/v1" {
		http.Error(w, fmt.Sprint(err, review.APIVersion), http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked = append(r.asked, review.Spec)
	status, code := r.rule(review.Spec)
	if code != http.StatusOK {
		http.Error(w, "broken on purpose", code)
		return
	}
	review.Status = status
	_ = json.NewEncoder(w).Encode(review)
}

// The requests about a user since the last call.
func (r *ruler) take(user string) (specs []authorizationv1.SubjectAccessReviewSpec) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, spec := range r.asked {
		if spec.User == user {
			specs = append(specs, spec)
		}
	}
	r.asked = nil
	return specs
}

func (r *ruler) set(rule func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rule = rule
}

func newRuler(t *testing.T) *ruler {
	r := &ruler{}
	r.set(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{}, http.StatusOK
	})
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	return r
}

// The kubeconfig of a webhook's server.
func kubeconfigOf(t *testing.T, server *httptest.Server, path string) string {
	file := clientcmdapi.NewConfig()
	file.Clusters["w"] = &clientcmdapi.Cluster{Server: server.URL + "/review", CertificateAuthorityData: authorityOf(server)}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "w", AuthInfo: "u"}
	file.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// The certificate of a webhook's server.
func authorityOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// Starts a server with flags and a store in memory.
func serve(t *testing.T, flags ...string) *rest.Config {
	config, _ := start(t, append([]string{"--ephemeral"}, flags...)...)
	return config
}

// Starts a server with flags; it can be stopped before the end of the test.
func start(t *testing.T, flags ...string) (*rest.Config, func()) {
	program := os.Getenv("PINTLE")
	if program == "" {
		t.Skip("PINTLE does not name the program")
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	command := exec.Command(program, append([]string{"serve", "--secure-port=0", "--kubeconfig=" + kubeconfig}, flags...)...)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	command.Stderr = log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	t.Cleanup(stop)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config, stop
}

// A client that acts as a user.
func as(t *testing.T, config *rest.Config, user string, groups ...string) *kubernetes.Clientset {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "of-test")}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const configuration = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: first.example.com
  webhook:
    timeout: 2s
    authorizedTTL: 60s
    unauthorizedTTL: 60s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: "!('exempt' in request.groups)"
    - expression: request.resourceAttributes.?fieldSelector.requirements.orValue([]).all(r, r.key != 'broken') || request.extra['none'][0] == 'x'
- {type: RBAC, name: rbac}
`

// After test/integration/auth/authz_config_test.go: order, selectors, conditions, caches, failures, reloading.
func TestAuthorizationByWebhook(t *testing.T) {
	webhook, directory := newRuler(t), t.TempDir()
	kubeconfig, file := kubeconfigOf(t, webhook.Server, filepath.Join(directory, "webhook")), filepath.Join(directory, "authorization.yaml")
	write := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(configuration, "Deny", kubeconfig))
	config, ctx := serve(t, "--authorization-config="+file), t.Context()
	list := func(user string, options metav1.ListOptions, groups ...string) error {
		_, err := as(t, config, user, groups...).CoreV1().Pods("default").List(ctx, options)
		return err
	}

	// No opinion: the next authorizer decides, and allows nothing.
	told(t, "no opinion", list("jane", metav1.ListOptions{}), apierrors.IsForbidden)
	// The webhook is never called for members of system:masters.
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	specs := webhook.take("jane")
	want := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Version: "v1", Resource: "pods"},
		User:               "jane",
		Groups:             []string{"of-test", "system:authenticated"},
	}
	if len(specs) != 1 || !reflect.DeepEqual(specs[0], want) {
		t.Errorf("asked %+v", specs)
	}

	webhook.set(func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: spec.User == "allowed", Denied: spec.User == "denied", Reason: "of " + spec.User}, http.StatusOK
	})
	for range 3 {
		selected := metav1.ListOptions{FieldSelector: "spec.nodeName=n,status.phase!=Failed", LabelSelector: "a in (b,c),!d"}
		if err := list("allowed", selected); err != nil {
			t.Error(err)
		}
		err := list("denied", metav1.ListOptions{})
		told(t, "denied", err, apierrors.IsForbidden)
		if !strings.Contains(err.Error(), "of denied") {
			t.Error(err)
		}
	}
	specs = webhook.take("allowed")
	fields := &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
		{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{"n"}},
		{Key: "status.phase", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"Failed"}},
	}}
	labels := &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "c"}},
		{Key: "d", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	if len(specs) != 1 || !reflect.DeepEqual(specs[0].ResourceAttributes.FieldSelector, fields) || !reflect.DeepEqual(specs[0].ResourceAttributes.LabelSelector, labels) {
		t.Errorf("one question, and then what is remembered: %+v", specs)
	}

	// The webhook is not called for exempt users, nor for non-resource requests.
	told(t, "exempt", list("allowed", metav1.ListOptions{Limit: 1}, "exempt"), apierrors.IsForbidden)
	if _, err := as(t, config, "allowed").RESTClient().Get().AbsPath("/metrics").DoRaw(ctx); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if specs := webhook.take("allowed"); len(specs) != 0 {
		t.Errorf("asked %+v", specs)
	}
	// A condition with an evaluation error denies, and so does a failing webhook; failures are not cached.
	told(t, "condition", list("allowed", metav1.ListOptions{FieldSelector: "broken=x"}), apierrors.IsInternalError)
	webhook.set(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{}, http.StatusBadRequest
	})
	for range 2 {
		told(t, "failure", list("john", metav1.ListOptions{}), apierrors.IsInternalError)
	}
	if specs := webhook.take("john"); len(specs) != 2 {
		t.Errorf("asked %+v", specs)
	}
	// A review reports the error.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "john", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}}
	review, err := kubernetes.NewForConfigOrDie(config).AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || review.Status.Allowed || !review.Status.Denied || !strings.Contains(review.Status.EvaluationError, "broken on purpose") && !strings.Contains(review.Status.EvaluationError, "rejected our request") {
		t.Errorf("%+v %v", review.Status, err)
	}

	// An invalid configuration changes nothing; a valid one takes effect soon.
	reloads := func(status string) bool {
		metrics, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(metrics), "\n") {
			if strings.HasPrefix(line, "apiserver_authorization_config_controller_automatic_reloads_total") && strings.Contains(line, `status="`+status+`"`) {
				return true
			}
		}
		return false
	}
	write("kind: Nonsense")
	eventually(t, "a failure is counted", func() bool { return reloads("failure") })
	told(t, "kept", list("john", metav1.ListOptions{}), apierrors.IsInternalError)
	webhook.set(func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, http.StatusOK
	})
	write(fmt.Sprintf(configuration, "NoOpinion", kubeconfig))
	eventually(t, "a success is counted", func() bool { return reloads("success") })
	if err := list("john", metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	webhook.Close()
	if err := list("john", metav1.ListOptions{}); err != nil {
		t.Error("an answer is remembered", err)
	}
	err = list("nobody", metav1.ListOptions{})
	if !apierrors.IsInternalError(err) {
		t.Error("nobody can say", err)
	}
}
