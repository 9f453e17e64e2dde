package clients

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The warnings that a client received.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) check(t *testing.T, want ...string) {
	t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.texts) != len(want) || len(want) > 0 && !reflect.DeepEqual(w.texts, want) {
		t.Errorf("warnings %q, not %q", w.texts, want)
	}
	w.texts = nil
}

// The claims that the tests read.
type tokenPayload struct {
	Sub        string
	Aud        []string
	Iss        string
	Exp        int64
	Kubernetes struct {
		Namespace                         string
		Pod, Secret, Node, ServiceAccount *struct{ Name, UID string }
		WarnAfter                         *int64
	} `json:"kubernetes.io"`
}

// A server with an issuer and an audience of its own, and a service account in a namespace.
type tokenServer struct {
	client   *kubernetes.Clientset
	config   *rest.Config
	warnings warnings
}

func newTokenServer(t *testing.T, flags ...string) *tokenServer {
	config := serve(t, append([]string{"--service-account-issuer=https://foo.bar.example.com", "--api-audiences=api",
		"--service-account-max-token-expiration=7200s", "--disable-admission-plugins=ServiceAccount"}, flags...)...)
	server := &tokenServer{config: config}
	own := rest.CopyConfig(config)
	own.WarningHandler, own.QPS = &server.warnings, -1
	server.client = kubernetes.NewForConfigOrDie(own)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "myns"}}
	if _, err := server.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return server
}

func (s *tokenServer) ask(t *testing.T, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return s.client.CoreV1().ServiceAccounts("myns").CreateToken(t.Context(), "test-svcacct", request, metav1.CreateOptions{})
}

// An issued token with its claims.
func (s *tokenServer) given(t *testing.T, request *authenticationv1.TokenRequest, warnings ...string) (*authenticationv1.TokenRequest, tokenPayload) {
	t.Helper()
	answer, err := s.ask(t, request)
	if err != nil {
		t.Fatal(err)
	}
	s.warnings.check(t, warnings...)
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(answer.Status.Token, ".")[1])
	var payload tokenPayload
	if err != nil || json.Unmarshal(text, &payload) != nil {
		t.Fatalf("%s %v", text, err)
	}
	account := payload.Kubernetes.ServiceAccount
	if payload.Sub != "system:serviceaccount:myns:test-svcacct" || payload.Kubernetes.Namespace != "myns" || account == nil || account.Name != "test-svcacct" {
		t.Errorf("%s", text)
	}
	return answer, payload
}

func (s *tokenServer) refused(t *testing.T, what string, request *authenticationv1.TokenRequest, part string) {
	t.Helper()
	if _, err := s.ask(t, request); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: %v", what, err)
	}
	s.warnings.check(t)
}

// Waits until a token review has the expected result; returns the reviewed user.
func (s *tokenServer) holds(t *testing.T, token string, want bool) authenticationv1.UserInfo {
	t.Helper()
	var status authenticationv1.TokenReviewStatus
	eventually(t, fmt.Sprintf("the token holds: %v", want), func() bool {
		review, err := s.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status = review.Status
		return status.Authenticated == want && (status.Error == "") == want
	})
	delete(status.User.Extra, "authentication.kubernetes.io/credential-id")
	// The token authenticates requests, too.
	own := rest.AnonymousClientConfig(s.config)
	own.BearerToken = token
	_, err := kubernetes.NewForConfigOrDie(own).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) == want {
		t.Error(want, err)
	}
	return status.User
}

// Creates objects of the test; the returned function deletes them.
func (s *tokenServer) account(t *testing.T) (types.UID, func()) {
	t.Helper()
	accounts := s.client.CoreV1().ServiceAccounts("myns")
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "test-svcacct"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove := sync.OnceFunc(func() { _ = accounts.Delete(t.Context(), account.Name, metav1.DeleteOptions{}) })
	return account.UID, remove
}

func (s *tokenServer) pod(t *testing.T, name, account, node string) (types.UID, func()) {
	t.Helper()
	pods := s.client.CoreV1().Pods("myns")
	pod, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{ServiceAccountName: account, NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	return pod.UID, sync.OnceFunc(func() { _ = pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}) })
}

func (s *tokenServer) secret(t *testing.T) (types.UID, func()) {
	t.Helper()
	secrets := s.client.CoreV1().Secrets("myns")
	secret, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "test-secret"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.UID, sync.OnceFunc(func() { _ = secrets.Delete(t.Context(), "test-secret", metav1.DeleteOptions{}) })
}

func (s *tokenServer) node(t *testing.T) (types.UID, func()) {
	t.Helper()
	nodes := s.client.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "test-node"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.UID, sync.OnceFunc(func() { _ = nodes.Delete(t.Context(), "test-node", metav1.DeleteOptions{}) })
}

// A request for a token that is bound to an object.
func boundTo(kind, name string, uid types.UID) *authenticationv1.TokenRequest {
	reference := &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: name, UID: uid}
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"api"}, BoundObjectRef: reference}}
}

func unbound(audiences ...string) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
}

// After test/integration/auth/svcaccttoken_test.go, with the same names.
func TestServiceAccountAnnotationDeprecation(t *testing.T) {
	server := newTokenServer(t)
	annotations := map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "test-svcacct", Annotations: annotations}}
	if _, err := server.client.CoreV1().ServiceAccounts("myns").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.warnings.check(t, "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets")
	server.pod(t, "test-pod", "test-svcacct", "")
	server.warnings.check(t)
}

func TestServiceAccountTokenCreate(t *testing.T) {
	server := newTokenServer(t)
	for name, test := range map[string]func(*testing.T, *tokenServer){
		"bound to service account":                                                 tokenOfAccount,
		"service account UID validation":                                           tokenWithUID,
		"bound to service account and pod":                                         tokenOfPod,
		"bound to service account and a pod with an assigned nodeName":             tokenOfScheduledPod,
		"bound to service account and node":                                        tokenOfNode,
		"bound to service account and secret":                                      tokenOfSecret,
		"bound to service account and pod running as different service account":    tokenOfOtherPod,
		"expiration extended token":                                                extendedToken,
		"a token without an api audience is invalid":                               tokenForOthers,
		"a tokenrequest without an audience is valid against the api":              tokenForNobody,
		"a token should be invalid after recreating same name pod":                 tokenOfEarlierPod,
		"a token should be invalid after recreating same name secret":              tokenOfEarlierSecret,
		"a token request within expiration time, and with out-of-range expiration": tokenForLong,
	} {
		t.Run(name, func(t *testing.T) { test(t, server) })
	}
}

func tokenOfAccount(t *testing.T, s *tokenServer) {
	s.refused(t, "no account", unbound("api"), `serviceaccounts "test-svcacct" not found`)
	_, remove := s.account(t)
	defer remove()
	misnamed, misplaced := unbound("api"), unbound("api")
	misnamed.Name, misplaced.Namespace = "invalid-name", "invalid-namespace"
	s.refused(t, "another name", misnamed, "must match the service account name")
	s.refused(t, "another namespace", misplaced, "does not match the namespace")
	answer, payload := s.given(t, unbound("api"))
	if answer.Name != "test-svcacct" || answer.Namespace != "myns" || answer.CreationTimestamp.IsZero() {
		t.Errorf("%+v", answer)
	}
	if k := payload.Kubernetes; !reflect.DeepEqual(payload.Aud, []string{"api"}) || k.Pod != nil || k.Secret != nil || k.Node != nil || payload.Iss != "https://foo.bar.example.com" {
		t.Errorf("%+v", payload)
	}
	if user := s.holds(t, answer.Status.Token, true); len(user.Extra) > 0 {
		t.Errorf("%+v", user)
	}
	remove()
	s.holds(t, answer.Status.Token, false)
}

// Upstream's gate TokenRequestServiceAccountUIDValidation is on by default.
func tokenWithUID(t *testing.T, s *tokenServer) {
	uid, remove := s.account(t)
	defer remove()
	right, wrong := unbound("api"), unbound("api")
	right.UID, wrong.UID = uid, "wrong-uid-12345"
	s.given(t, right)
	s.refused(t, "another UID", wrong, `Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "test-svcacct": the UID in the token request (wrong-uid-12345) does not match the UID of the service account (`+string(uid)+`)`)
	if answer, _ := s.given(t, unbound("api")); answer.UID != uid {
		t.Errorf("%+v", answer)
	}
}

// Steps that all bound tokens go through: no object, its UID, another UID; returns a token without a UID.
func (s *tokenServer) bound(t *testing.T, kind, name string, create func() (types.UID, func())) (*authenticationv1.TokenRequest, tokenPayload, types.UID, func()) {
	t.Helper()
	s.refused(t, "no account", boundTo(kind, name, ""), `serviceaccounts "test-svcacct" not found`)
	_, remove := s.account(t)
	t.Cleanup(remove)
	s.refused(t, "no object", boundTo(kind, name, ""), "not found")
	uid, removeObject := create()
	s.given(t, boundTo(kind, name, uid))
	s.refused(t, "another UID", boundTo(kind, name, "wrong"), "does not match the UID in record")
	answer, payload := s.given(t, boundTo(kind, name, ""))
	if !reflect.DeepEqual(payload.Aud, []string{"api"}) {
		t.Errorf("%+v", payload)
	}
	return answer, payload, uid, sync.OnceFunc(func() { removeObject(); remove() })
}

func tokenOfPod(t *testing.T, s *tokenServer) {
	answer, payload, uid, remove := s.bound(t, "Pod", "test-pod", func() (types.UID, func()) { return s.pod(t, "test-pod", "test-svcacct", "") })
	defer remove()
	if k := payload.Kubernetes; k.Pod == nil || k.Pod.Name != "test-pod" || k.Secret != nil || k.Node != nil {
		t.Errorf("%+v", payload)
	}
	want := map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"test-pod"}, "authentication.kubernetes.io/pod-uid": {string(uid)}}
	if user := s.holds(t, answer.Status.Token, true); !reflect.DeepEqual(user.Extra, want) {
		t.Errorf("%+v", user)
	}
	remove()
	s.holds(t, answer.Status.Token, false)
}

func tokenOfScheduledPod(t *testing.T, s *tokenServer) {
	for _, there := range []bool{false, true} {
		var nodeUID types.UID
		removeNode := func() {}
		if there {
			nodeUID, removeNode = s.node(t)
		}
		answer, payload, uid, remove := s.bound(t, "Pod", "test-pod", func() (types.UID, func()) { return s.pod(t, "test-pod", "test-svcacct", "test-node") })
		want := map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"test-pod"}, "authentication.kubernetes.io/pod-uid": {string(uid)},
			"authentication.kubernetes.io/node-name": {"test-node"}}
		if there {
			want["authentication.kubernetes.io/node-uid"] = authenticationv1.ExtraValue{string(nodeUID)}
		}
		if node := payload.Kubernetes.Node; node == nil || node.Name != "test-node" || node.UID != string(nodeUID) {
			t.Errorf("%+v", payload)
		}
		if user := s.holds(t, answer.Status.Token, true); !reflect.DeepEqual(user.Extra, want) {
			t.Errorf("%+v", user)
		}
		remove()
		removeNode()
		s.holds(t, answer.Status.Token, false)
	}
}

func tokenOfNode(t *testing.T, s *tokenServer) {
	answer, payload, uid, remove := s.bound(t, "Node", "test-node", func() (types.UID, func()) { return s.node(t) })
	defer remove()
	if k := payload.Kubernetes; k.Node == nil || k.Node.Name != "test-node" || k.Node.UID != string(uid) || k.Pod != nil || k.Secret != nil {
		t.Errorf("%+v", payload)
	}
	want := map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/node-name": {"test-node"}, "authentication.kubernetes.io/node-uid": {string(uid)}}
	if user := s.holds(t, answer.Status.Token, true); !reflect.DeepEqual(user.Extra, want) {
		t.Errorf("%+v", user)
	}
	remove()
	s.holds(t, answer.Status.Token, false)
}

func tokenOfSecret(t *testing.T, s *tokenServer) {
	answer, payload, _, remove := s.bound(t, "Secret", "test-secret", func() (types.UID, func()) { return s.secret(t) })
	defer remove()
	if k := payload.Kubernetes; k.Secret == nil || k.Secret.Name != "test-secret" || k.Pod != nil {
		t.Errorf("%+v", payload)
	}
	s.holds(t, answer.Status.Token, true)
	remove()
	s.holds(t, answer.Status.Token, false)
}

func tokenOfOtherPod(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	_, removePod := s.pod(t, "other-test-pod", "other-test-svcacct", "")
	defer removePod()
	s.refused(t, "a pod of another account", boundTo("Pod", "other-test-pod", ""), "cannot bind token")
}

// A pod's token for the API server with the lifetime that kubelets request is valid for a year; a
// token for another audience is not.
func extendedToken(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	_, removePod := s.pod(t, "test-pod", "test-svcacct", "")
	defer removePod()
	near := func(what string, got, want int64) {
		t.Helper()
		if got < want-10 || got > want+10 {
			t.Errorf("%s: %d, not %d", what, got, want)
		}
	}
	seconds, now := int64(3607), time.Now().Unix()
	request := boundTo("Pod", "test-pod", "")
	request.Spec.ExpirationSeconds = &seconds
	answer, payload := s.given(t, request)
	s.holds(t, answer.Status.Token, true)
	if payload.Kubernetes.WarnAfter == nil {
		t.Fatalf("%+v", payload)
	}
	near("exp", payload.Exp, now+365*24*3600)
	near("warnafter", *payload.Kubernetes.WarnAfter, now+seconds)
	near("status", answer.Status.ExpirationTimestamp.Unix(), now+seconds)
	if *answer.Spec.ExpirationSeconds != seconds {
		t.Errorf("%+v", answer.Spec)
	}
	request.Spec.Audiences = []string{"not-the-api", "api"}
	answer, payload = s.given(t, request)
	near("exp", payload.Exp, now+seconds)
	if payload.Kubernetes.WarnAfter != nil || *answer.Spec.ExpirationSeconds != seconds {
		t.Errorf("%+v %+v", payload, answer.Spec)
	}
}

func tokenForOthers(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	answer, _ := s.given(t, unbound("not-the-api"))
	s.holds(t, answer.Status.Token, false)
}

func tokenForNobody(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	answer, payload := s.given(t, unbound())
	if !reflect.DeepEqual(payload.Aud, []string{"api"}) {
		t.Errorf("%+v", payload)
	}
	s.holds(t, answer.Status.Token, true)
}

func tokenOfEarlierPod(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	uid, removePod := s.pod(t, "test-pod", "test-svcacct", "")
	answer, _ := s.given(t, boundTo("Pod", "test-pod", uid))
	s.holds(t, answer.Status.Token, true)
	removePod()
	s.holds(t, answer.Status.Token, false)
	_, removePod = s.pod(t, "test-pod", "test-svcacct", "")
	defer removePod()
	s.holds(t, answer.Status.Token, false)
}

func tokenOfEarlierSecret(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	uid, removeSecret := s.secret(t)
	answer, _ := s.given(t, boundTo("Secret", "test-secret", uid))
	s.holds(t, answer.Status.Token, true)
	removeSecret()
	s.holds(t, answer.Status.Token, false)
	_, removeSecret = s.secret(t)
	defer removeSecret()
	s.holds(t, answer.Status.Token, false)
}

func tokenForLong(t *testing.T, s *tokenServer) {
	_, remove := s.account(t)
	defer remove()
	for _, row := range []struct {
		asked, given int64
		warnings     []string
	}{
		{6600, 6600, nil},
		{7800, 7200, []string{"requested expiration of 7800 seconds shortened to 7200 seconds"}},
	} {
		request := unbound("api")
		request.Spec.ExpirationSeconds = &row.asked
		answer, payload := s.given(t, request, row.warnings...)
		took := payload.Exp - time.Now().Unix()
		if *answer.Spec.ExpirationSeconds != row.given || took > row.given || took < row.given-10 {
			t.Errorf("%+v %+v", answer.Spec, payload)
		}
		s.holds(t, answer.Status.Token, true)
	}
}
