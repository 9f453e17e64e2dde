package clients

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file are those of test/integration/auth/auth_test.go with the same names, with a
// webhook for its authenticator. Upstream slows requests down to see the annotation of their latency.

// A server of bob, alice and two service accounts on nodes; the token is the user's name.
type impersonationServer struct {
	config *rest.Config
	log    string
	// The metrics of impersonation when they were last checked.
	counted map[string]int
}

func serveImpersonation(t *testing.T, flags ...string) *impersonationServer {
	webhook := &tokenWebhook{version: "v1", asked: map[string]int{}}
	webhook.rule = func(spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, int) {
		user := authenticationv1.UserInfo{Username: spec.Token}
		if number, found := strings.CutPrefix(spec.Token, "system:serviceaccount:default:sa"); found {
			user.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/node-name": {"node" + number}}
		}
		return authenticationv1.TokenReviewStatus{Authenticated: true, User: user}, http.StatusOK
	}
	webhook.Server = httptest.NewTLSServer(webhook)
	t.Cleanup(webhook.Close)
	directory := t.TempDir()
	policy, log := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: Metadata}]}")
	kubeconfig := kubeconfigOf(t, webhook.Server, filepath.Join(directory, "webhook"))
	config := serve(t, append(flags, "--authorization-mode=RBAC", "--authentication-token-webhook-config-file="+kubeconfig, "--authentication-token-webhook-version=v1",
		"--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking")...)
	s := &impersonationServer{config: config, log: log}
	grant(t, config, "system:node:node1", "list", "", "pods")
	grant(t, config, "alice", "list", "", "pods")
	s.begin(t)
	return s
}

// Grants a user a verb until the end of the test.
func grant(t *testing.T, config *rest.Config, user, verb, group, resource string, names ...string) {
	t.Helper()
	grantRules(t, config, user, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names})
}

func grantRules(t *testing.T, config *rest.Config, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config).RbacV1()
	name := unique("grant")
	createClusterRole(t, config, name, rules)
	bind(t, config, "", "ClusterRole "+name, user)
	t.Cleanup(func() {
		_ = client.ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = client.ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// A user who impersonates another one.
func (s *impersonationServer) acting(user, other string) *kubernetes.Clientset {
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken, config.Impersonate = user, rest.ImpersonationConfig{UserName: other}
	return kubernetes.NewForConfigOrDie(config)
}

// Forgets all events and counts.
func (s *impersonationServer) begin(t *testing.T) {
	if err := os.Truncate(s.log, 0); err != nil {
		t.Fatal(err)
	}
	s.counted = s.metrics(t)
}

func (s *impersonationServer) metrics(t *testing.T) map[string]int {
	text, err := kubernetes.NewForConfigOrDie(s.config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, "} ")
		if name, found := strings.CutPrefix(name, "apiserver_impersonation_"); found && !strings.Contains(name, "_bucket") && !strings.Contains(name, "_sum") {
			if counts[name], err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return counts
}

// Compares what was counted since the last call with rows of a decision, a mode, and the numbers of
// impersonations and of their authorizations.
func (s *impersonationServer) checkMetrics(t *testing.T, rows ...string) {
	t.Helper()
	want := map[string]int{}
	for _, row := range rows {
		var decision, mode string
		var attempts, authorizations int
		if _, err := fmt.Sscanf(row, "%s %s %d %d", &decision, &mode, &attempts, &authorizations); err != nil {
			t.Fatal(row, err)
		}
		labels := fmt.Sprintf("{decision=%q,mode=%q", decision, strings.TrimPrefix(mode, "-"))
		for name, count := range map[string]int{"": attempts, "authorization_": authorizations} {
			if count > 0 {
				want[name+"attempts_total"+labels] = count
				want[name+"attempts_duration_seconds_count"+labels] = count
			}
		}
	}
	found := s.metrics(t)
	since := maps.Clone(found)
	for name, count := range s.counted {
		since[name] -= count
	}
	maps.DeleteFunc(since, func(_ string, count int) bool { return count == 0 })
	if !reflect.DeepEqual(since, want) {
		t.Errorf("counted\n%v, not\n%v", since, want)
	}
	s.counted = found
}

// Compares the events of a user's impersonations with rows of a verb, a code, and the message, or the
// impersonated user, the groups and the constraint.
func (s *impersonationServer) checkEvents(t *testing.T, user string, rows ...string) {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, event := range auditEvents(t, string(text)) {
		other, message := event.ImpersonatedUser, event.ResponseStatus.Message
		if event.Stage != "ResponseComplete" || event.User.Username != user || other.Username == "" && !strings.Contains(message, "impersonate") {
			continue
		}
		row := fmt.Sprintf("%s %d ", event.Verb, event.ResponseStatus.Code)
		if other.Username != "" {
			slices.Sort(other.Groups)
			row += strings.TrimSpace(fmt.Sprintf("%s%s %s %s", other.Username, other.UID, strings.Join(other.Groups, ","), event.AuthenticationMetadata.ImpersonationConstraint))
			if event.Annotations["authorization.k8s.io/decision"] != "allow" {
				row += " is not allowed"
			}
		}
		found = append(found, row+message)
	}
	if !slices.Equal(found, rows) {
		t.Errorf("events of %s\n%s\nnot\n%s", user, strings.Join(found, "\n"), strings.Join(rows, "\n"))
	}
}

// Lists pods; an error must have this message.
func listPods(t *testing.T, client *kubernetes.Clientset, message string) {
	t.Helper()
	_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	checkForbidden(t, err, message)
}

func checkForbidden(t *testing.T, err error, message string) {
	t.Helper()
	if message == "" && err != nil || message != "" && (!apierrors.IsForbidden(err) || err.Error() != message) {
		t.Errorf("%v, not %q", err, message)
	}
}

// The message of a refused impersonation.
func cannot(user, verb, kind, resource, group string) string {
	return fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q at the cluster scope", kind, user, verb, resource, group)
}

func TestConstrainedImpersonation(t *testing.T) {
	s := serveImpersonation(t)
	const authentication = "authentication.k8s.io"
	onPods := func(user, mode string) string {
		return cannot(user, "impersonate-on:"+mode+":list", "pods", "pods", "")
	}
	t.Run("bob impersonating alice", func(t *testing.T) {
		s.begin(t)
		bob := s.acting("bob", "alice")
		listPods(t, bob, onPods("bob", "user-info"))
		grant(t, s.config, "bob", "impersonate:user-info", authentication, "users")
		listPods(t, bob, onPods("bob", "user-info"))
		grant(t, s.config, "bob", "impersonate-on:user-info:list", "", "pods")
		listPods(t, bob, "")
		_, err := bob.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		checkForbidden(t, err, cannot("bob", "impersonate-on:user-info:watch", "pods", "pods", ""))
		s.checkMetrics(t, "allowed user-info 1 2", "denied user-info 0 3", "denied legacy 0 3", "denied - 3 0")
		s.checkEvents(t, "bob", "list 403 "+onPods("bob", "user-info"), "list 403 "+onPods("bob", "user-info"),
			"list 200 alice system:authenticated impersonate:user-info", "watch 403 "+err.Error())
	})
	t.Run("bob impersonating a node", func(t *testing.T) {
		s.begin(t)
		bob := s.acting("bob", "system:node:node1")
		listPods(t, bob, onPods("bob", "arbitrary-node"))
		grant(t, s.config, "bob", "impersonate:user-info", authentication, "users")
		grant(t, s.config, "bob", "impersonate-on:arbitrary-node:list", "", "pods")
		node := cannot("bob", "impersonate:arbitrary-node", `nodes.authentication.k8s.io "node1"`, "nodes", authentication)
		listPods(t, bob, node)
		grant(t, s.config, "bob", "impersonate:arbitrary-node", authentication, "nodes")
		listPods(t, bob, "")
		s.checkMetrics(t, "allowed arbitrary-node 1 3", "denied arbitrary-node 0 2", "denied legacy 0 2", "denied - 2 0")
		s.checkEvents(t, "bob", "list 403 "+onPods("bob", "arbitrary-node"), "list 403 "+node,
			"list 200 system:node:node1 system:authenticated,system:nodes impersonate:arbitrary-node")
	})
	t.Run("impersonating scheduled node", func(t *testing.T) {
		s.begin(t)
		const first, second = "system:serviceaccount:default:sa1", "system:serviceaccount:default:sa2"
		for _, account := range []string{first, second} {
			grant(t, s.config, account, "impersonate:associated-node", authentication, "nodes")
			grant(t, s.config, account, "impersonate-on:associated-node:list", "", "pods")
		}
		listPods(t, s.acting(second, "system:node:node1"), onPods(second, "arbitrary-node"))
		listPods(t, s.acting(first, "system:node:node1"), "")
		s.checkMetrics(t, "allowed associated-node 1 2", "denied arbitrary-node 0 1", "denied legacy 0 1", "denied - 1 0")
		s.checkEvents(t, second, "list 403 "+onPods(second, "arbitrary-node"))
		s.checkEvents(t, first, "list 200 system:node:node1 system:authenticated,system:nodes impersonate:associated-node")
	})
	t.Run("fallback to legacy impersonation", func(t *testing.T) {
		s.begin(t)
		grant(t, s.config, "bob", "impersonate", "", "users")
		listPods(t, s.acting("bob", "alice"), "")
		s.checkMetrics(t, "allowed legacy 1 1", "denied user-info 0 1")
		s.checkEvents(t, "bob", "list 200 alice system:authenticated")
	})
}

func TestConstrainedImpersonationDisabled(t *testing.T) {
	s := serveImpersonation(t, "--feature-gates=ConstrainedImpersonation=false")
	const authentication, account = "authentication.k8s.io", "system:serviceaccount:default:sa1"
	t.Run("bob impersonating alice", func(t *testing.T) {
		s.begin(t)
		grant(t, s.config, "bob", "impersonate:user-info", authentication, "users")
		grant(t, s.config, "bob", "impersonate-on:user-info:list", "", "pods")
		alice := cannot("bob", "impersonate", `users "alice"`, "users", "")
		listPods(t, s.acting("bob", "alice"), alice)
		grant(t, s.config, "bob", "impersonate", "", "users")
		listPods(t, s.acting("bob", "alice"), "")
		s.checkEvents(t, "bob", "list 403 "+alice, "list 200 alice system:authenticated")
	})
	t.Run("serviceaccount impersonating a node", func(t *testing.T) {
		s.begin(t)
		grant(t, s.config, account, "impersonate:associated-node", authentication, "nodes")
		grant(t, s.config, account, "impersonate-on:associated-node:list", "", "pods")
		node := cannot(account, "impersonate", `users "system:node:node1"`, "users", "")
		listPods(t, s.acting(account, "system:node:node1"), node)
		grant(t, s.config, account, "impersonate", "", "users", "system:node:node1")
		grant(t, s.config, account, "impersonate", "", "groups", "system:nodes")
		listPods(t, s.acting(account, "system:node:node1"), "")
		s.checkEvents(t, account, "list 403 "+node, "list 200 system:node:node1 system:authenticated")
	})
}

func TestImpersonateWithUID(t *testing.T) {
	s := serveImpersonation(t)
	t.Run("impersonation with uid header", func(t *testing.T) {
		s.begin(t)
		grant(t, s.config, "alice", "create", "certificates.k8s.io", "certificatesigningrequests")
		config := rest.CopyConfig(s.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "alice", UID: "1234"}
		request, err := base64.StdEncoding.DecodeString(newSigningRequest(t))
		if err != nil {
			t.Fatal(err)
		}
		spec := certificatesv1.CertificateSigningRequestSpec{SignerName: "kubernetes.io/kube-apiserver-client", Request: request, Usages: []certificatesv1.KeyUsage{"client auth"}}
		created, err := kubernetes.NewForConfigOrDie(config).CertificatesV1().CertificateSigningRequests().Create(t.Context(),
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "impersonated-csr"}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec.Groups, spec.Username, spec.UID = []string{"system:authenticated"}, "alice", "1234"
		if !reflect.DeepEqual(created.Spec, spec) {
			t.Errorf("%+v", created.Spec)
		}
		admin, err := kubernetes.NewForConfigOrDie(s.config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.checkEvents(t, admin.Status.UserInfo.Username, "create 201 alice1234 system:authenticated impersonate:user-info")
	})
	t.Run("impersonation with only UID fails", func(t *testing.T) {
		config := rest.CopyConfig(s.config)
		config.Impersonate = rest.ImpersonationConfig{UID: "1234"}
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		const message = `requested &user.DefaultInfo{Name:"", UID:"1234", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name`
		if !apierrors.IsBadRequest(err) || err.Error() != message {
			t.Error(err)
		}
	})
	t.Run("impersonating UID without authorization fails", func(t *testing.T) {
		s.begin(t)
		const other = "some-user-anonymous-can-impersonate"
		grant(t, s.config, "system:anonymous", "impersonate:user-info", "authentication.k8s.io", "users", other)
		grant(t, s.config, "system:anonymous", "impersonate-on:user-info:list", "", "nodes")
		config := rest.AnonymousClientConfig(s.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: other, UID: "1234"}
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		message := cannot("system:anonymous", "impersonate:user-info", `uids.authentication.k8s.io "1234"`, "uids", "authentication.k8s.io")
		checkForbidden(t, err, message)
		s.checkEvents(t, "system:anonymous", "list 403 "+message)
	})
}
