package clients

import (
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// After test/integration/auth/bootstraptoken_test.go. Upstream's tokens come from a list of its own; here they are
// secrets.
func TestBootstrapTokenAuth(t *testing.T) {
	config := serve(t, "--enable-bootstrap-token-auth", "--authorization-mode=AlwaysAllow")
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("kube-system")
	for name, row := range map[string]struct {
		data map[string]string
		code int
	}{
		"valid token":           {map[string]string{"token-secret": "validtokensecret"}, http.StatusOK},
		"invalid token format":  {map[string]string{"token-secret": "invalid"}, http.StatusUnauthorized},
		"invalid token expired": {map[string]string{"token-secret": "validtokensecret", "expiration": time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			row.data["token-id"], row.data["usage-bootstrap-authentication"] = "token1", "true"
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-token1"}, Type: corev1.SecretTypeBootstrapToken, StringData: row.data}
			if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			defer secrets.Delete(t.Context(), secret.Name, metav1.DeleteOptions{})
			if code, text := send(t, config, "token1.validtokensecret", "", "GET", "/api/v1/pods", ""); code != row.code {
				t.Errorf("%d %s", code, text)
			}
		})
	}
}

// Requests tokens of a service account as k8s.io/controller-manager's DynamicClientBuilder does:
// it creates a missing account, and requests another token when one is rejected.
type accountTokens struct {
	t        *testing.T
	admin    *kubernetes.Clientset
	next     http.RoundTripper
	mutex    sync.Mutex
	token    string
	requests int
}

func (a *accountTokens) current(refused string) string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.token != "" && a.token != refused {
		return a.token
	}
	ctx, seconds := a.t.Context(), int64(600)
	accounts := a.admin.CoreV1().ServiceAccounts("default")
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := accounts.CreateToken(ctx, "dt", request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "dt"}}, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
		answer, err = accounts.CreateToken(ctx, "dt", request, metav1.CreateOptions{})
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.token = answer.Status.Token
	a.requests++
	return a.token
}

func (a *accountTokens) RoundTrip(request *http.Request) (*http.Response, error) {
	token := a.current("")
	for {
		own := request.Clone(request.Context())
		own.Header.Set("Authorization", "Bearer "+token)
		answer, err := a.next.RoundTrip(own)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || request.Body != nil {
			return answer, err
		}
		answer.Body.Close()
		token = a.current(token)
	}
}

// After test/integration/auth/dynamic_client_test.go: a client continues to work after its account
// was deleted and created again.
func TestDynamicClientBuilder(t *testing.T) {
	config := serve(t, "--service-account-issuer=https://foo.bar.example.com", "--api-audiences=api", "--authorization-mode=AlwaysAllow",
		"--service-account-max-token-expiration=1h")
	tokens := &accountTokens{t: t, admin: kubernetes.NewForConfigOrDie(config)}
	own := rest.AnonymousClientConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		tokens.next = next
		return tokens
	})
	client := kubernetes.NewForConfigOrDie(own)
	check := func() {
		t.Helper()
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().ServiceAccounts("default").Get(t.Context(), "dt", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	check()
	if err := client.CoreV1().ServiceAccounts("default").Delete(t.Context(), "dt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token is refused, and another one asked for", func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil && tokens.requests == 2
	})
	check()
}

// After test/integration/auth/selfsubjectreview_test.go.
func TestGetsSelfAttributes(t *testing.T) {
	config := serve(t)
	for name, row := range map[string]struct {
		as   rest.ImpersonationConfig
		want authenticationv1.UserInfo
	}{
		"Username": {rest.ImpersonationConfig{UserName: "alice"}, authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}}},
		"Username with groups and UID": {rest.ImpersonationConfig{UserName: "alice", UID: "unique-id", Groups: []string{"devs", "admins"}},
			authenticationv1.UserInfo{Username: "alice", UID: "unique-id", Groups: []string{"devs", "admins", "system:authenticated"}}},
		"Username with extra attributes": {rest.ImpersonationConfig{UserName: "alice", Extra: map[string][]string{"nicknames": {"cutie", "bestie"}}},
			authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"nicknames": {"cutie", "bestie"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			own := rest.CopyConfig(config)
			own.Impersonate = row.as
			client := kubernetes.NewForConfigOrDie(own)
			v1, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil || !reflect.DeepEqual(v1.Status.UserInfo, row.want) {
				t.Errorf("%+v %v", v1, err)
			}
		})
	}
}

// A self-subject review without valid credentials is unauthorized.
func TestGetsSelfAttributesError(t *testing.T) {
	config := rest.AnonymousClientConfig(serve(t, "--anonymous-auth=false"))
	for _, token := range []string{"", "wrong"} {
		config.BearerToken = token
		_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if told(t, fmt.Sprintf("token %q", token), err, apierrors.IsUnauthorized); err != nil && err.Error() != "Unauthorized" {
			t.Error(err)
		}
	}
}
