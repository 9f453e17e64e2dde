package clients

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// An OpenID provider whose keys change, and which can hang.
type provider struct {
	*httptest.Server
	mutex   sync.Mutex
	id      string
	key     *rsa.PrivateKey
	fetched int
	hangs   bool
	over    chan struct{}
}

func newProvider(t *testing.T) *provider {
	p := &provider{over: make(chan struct{})}
	p.rotate(t, "first")
	p.Server = httptest.NewTLSServer(p)
	t.Cleanup(func() {
		close(p.over)
		p.Close()
	})
	return p
}

func (p *provider) rotate(t *testing.T, id string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.id, p.key = id, key
}

func (p *provider) hang(hangs bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.hangs = hangs
}

func (p *provider) fetches() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.fetched
}

func (p *provider) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	p.mutex.Lock()
	hangs, id, key := p.hangs, p.id, p.key
	if request.URL.Path == "/keys" {
		p.fetched++
	}
	p.mutex.Unlock()
	if hangs {
		<-p.over
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch request.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, p.URL, p.URL+"/keys")
	case "/keys":
		modulus := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":%q,"n":%q,"e":"AQAB"}]}`, id, modulus)
	default:
		http.NotFound(w, request)
	}
}

// A token of this provider, with additional claims.
func (p *provider) token(t *testing.T, more map[string]any) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.signed(t, p.id, more)
}

func (p *provider) signed(t *testing.T, id string, more map[string]any) string {
	claims := map[string]any{"iss": p.URL, "aud": "pintle", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range more {
		claims[name] = value
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	message := encode([]byte(fmt.Sprintf(`{"alg":"RS256","kid":%q}`, id))) + "." + encode(payload)
	hash := sha256.Sum256([]byte(message))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return message + "." + encode(signature)
}

func (p *provider) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

// An AuthenticationConfiguration of these providers; anonymous requests are for /livez only.
func authentication(t *testing.T, providers ...*provider) string {
	file := map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"anonymous":  map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": "/livez"}}},
	}
	issuers := []any{}
	for _, p := range providers {
		issuers = append(issuers, map[string]any{
			"issuer":               map[string]any{"url": p.URL, "audiences": []string{"pintle"}, "certificateAuthority": p.authority()},
			"claimValidationRules": []any{map[string]any{"expression": "claims.?hd.orValue('example.com') == 'example.com'", "message": "another domain"}},
			"userValidationRules":  []any{map[string]any{"expression": "!user.username.startsWith('system:')", "message": "a reserved name"}},
			"claimMappings": map[string]any{
				"username": map[string]any{"expression": "claims.sub"},
				"groups":   map[string]any{"claim": "groups", "prefix": "oidc:"},
				"uid":      map[string]any{"expression": "claims.?uid.orValue('')"},
				"extra":    []any{map[string]any{"key": "example.com/team", "valueExpression": "claims.?team.orValue([])"}},
			},
		})
	}
	file["jwt"] = issuers
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The user that the server finds for a token.
func whoami(config *rest.Config, token string) (authenticationv1.UserInfo, error) {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return review.Status.UserInfo, err
}

func writeFile(t *testing.T, file, text string) {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// Whether the server's metrics have such a reload of its authentication configuration.
func hasReloaded(t *testing.T, config *rest.Config, status string) func() bool {
	return func() bool {
		metrics, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(metrics), "\n") {
			if strings.HasPrefix(line, "apiserver_authentication_config_controller_automatic_reloads_total") && strings.Contains(line, `status="`+status+`"`) {
				return true
			}
		}
		return false
	}
}

// After test/integration/apiserver/oidc/oidc_test.go: mapping, rules, rotation of keys, anonymous paths, reloading.
func TestTokensOfProviders(t *testing.T) {
	first, second, file := newProvider(t), newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
	writeFile(t, file, authentication(t, first))
	config := serve(t, "--authentication-config="+file)
	holds := func(token string) func() bool {
		return func() bool {
			_, err := whoami(config, token)
			return err == nil
		}
	}
	claims := map[string]any{"groups": []string{"dev"}, "uid": "7", "team": []string{"a", "b"}, "jti": "4711"}
	token := first.token(t, claims)
	eventually(t, "the provider has been asked", holds(token))
	user, err := whoami(config, token)
	want := authenticationv1.UserInfo{
		Username: "jane",
		UID:      "7",
		Groups:   []string{"oidc:dev", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=4711"},
			"example.com/team":                           {"a", "b"},
		},
	}
	if err != nil || !reflect.DeepEqual(user, want) {
		t.Errorf("%+v %v", user, err)
	}

	for name, claims := range map[string]map[string]any{
		"another audience": {"aud": "other"},
		"an ended token":   {"exp": time.Now().Add(-time.Minute).Unix()},
		"a later token":    {"nbf": time.Now().Add(time.Hour).Unix()},
		"another domain":   {"hd": "example.org"},
		"a reserved name":  {"sub": "system:admin"},
		"groups of no use": {"groups": 1},
		"another provider": {"iss": second.URL},
	} {
		_, err := whoami(config, first.token(t, claims))
		told(t, name, err, apierrors.IsUnauthorized)
	}
	parts := strings.Split(token, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	for _, token := range []string{none, parts[0] + "." + parts[1] + ".", token[:len(token)-8] + "AAAAAAAA", "a.b.c", strings.Repeat("a", 100_000)} {
		_, err := whoami(config, token)
		told(t, token[:5], err, func(err error) bool { return err != nil && !apierrors.IsForbidden(err) })
	}

	// Only /livez allows anonymous requests.
	anonymous := kubernetes.NewForConfigOrDie(rest.AnonymousClientConfig(config)).RESTClient()
	if _, err := anonymous.Get().AbsPath("/livez").DoRaw(t.Context()); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/version", "/livez/ping", "/readyz"} {
		_, err := anonymous.Get().AbsPath(path).DoRaw(t.Context())
		told(t, path, err, apierrors.IsUnauthorized)
	}

	// New keys are fetched when a token names one; the old ones are then invalid.
	old := first.token(t, map[string]any{"jti": "old"})
	stale := *first.key
	first.rotate(t, "second")
	eventually(t, "the new key counts", holds(first.token(t, nil)))
	if _, err := whoami(config, old); !apierrors.IsUnauthorized(err) {
		t.Error("a token of the old key", err)
	}
	forged := &provider{Server: first.Server, id: "second", key: &stale}
	if _, err := whoami(config, forged.token(t, nil)); !apierrors.IsUnauthorized(err) {
		t.Error("the old key by the name of the new one", err)
	}

	// An invalid configuration changes nothing; nor does one whose provider does not respond.
	writeFile(t, file, "kind: Nonsense")
	eventually(t, "a failure is counted", hasReloaded(t, config, "failure"))
	if _, err := whoami(config, first.token(t, claims)); err != nil {
		t.Error(err)
	}
	writeFile(t, file, authentication(t, first, second))
	eventually(t, "the second provider counts", holds(second.token(t, nil)))
	eventually(t, "a success is counted", hasReloaded(t, config, "success"))
	if _, err := whoami(config, first.token(t, claims)); err != nil {
		t.Error(err)
	}
	writeFile(t, file, authentication(t, second))
	gone := first.token(t, map[string]any{"jti": "gone"})
	eventually(t, "the first provider is gone", func() bool { return !holds(gone)() })
	if _, err := whoami(config, second.token(t, nil)); err != nil {
		t.Error(err)
	}
}

// Tokens with unknown keys make the server fetch keys at most once a second, and a hanging provider delays no
// other requests.
func TestTokensThatFlood(t *testing.T) {
	p, hanging, file := newProvider(t), newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
	hanging.hang(true)
	writeFile(t, file, authentication(t, p, hanging))
	config := serve(t, "--authentication-config="+file)
	good := p.token(t, nil)
	eventually(t, "the provider has been asked", func() bool {
		_, err := whoami(config, good)
		return err == nil
	})
	if _, err := whoami(config, hanging.token(t, nil)); !apierrors.IsUnauthorized(err) {
		t.Error("a provider that has never answered", err)
	}
	before, began := p.fetches(), time.Now()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for number := range 50 {
				token := p.signed(t, fmt.Sprintf("unknown-%d-%d", worker, number), nil)
				// The server may close a connection that only sends invalid tokens.
				if user, err := whoami(config, token); err == nil {
					t.Error(user)
				}
			}
		})
	}
	all.Wait()
	if fetched, most := p.fetches()-before, int(time.Since(began).Seconds())+2; fetched > most {
		t.Errorf("%d fetches for 400 tokens, %d at most were expected", fetched, most)
	}
	if _, err := whoami(config, p.token(t, map[string]any{"jti": "another"})); err != nil {
		t.Error(err)
	}
}

// A token webhook, and its requests.
type tokenWebhook struct {
	*httptest.Server
	mutex   sync.Mutex
	version string
	asked   map[string]int
	rule    func(spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, int)
}

func (w *tokenWebhook) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.APIVersion != "authentication.k8s.io/"+w.version {
		http.Error(out, fmt.Sprint(err, review.APIVersion), http.StatusBadRequest)
		return
	}
	w.mutex.Lock()
	w.asked[review.Spec.Token]++
	status, code := w.rule(review.Spec)
	w.mutex.Unlock()
	if code != http.StatusOK {
		http.Error(out, "broken on purpose", code)
		return
	}
	review.Status = status
	_ = json.NewEncoder(out).Encode(review)
}

func (w *tokenWebhook) times(token string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.asked[token]
}

// After plugin/pkg/authenticator/token/webhook/webhook_v1_test.go and test/integration/auth/auth_test.go: users
// of tokens, audiences, caches, and failures, which are never cached and never anonymous.
func TestTokenWebhook(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) { testTokenWebhook(t, version) })
	}
}

func testTokenWebhook(t *testing.T, version string) {
	webhook := &tokenWebhook{version: version, asked: map[string]int{}}
	failing := 0
	webhook.rule = func(spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, int) {
		switch {
		case spec.Token == "fails" || spec.Token == "recovers" && failing < 2:
			failing++
			return authenticationv1.TokenReviewStatus{}, http.StatusInternalServerError
		case spec.Token == "wrong":
			return authenticationv1.TokenReviewStatus{Error: "no database"}, http.StatusOK
		case spec.Token == "elsewhere":
			return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"elsewhere"}, User: authenticationv1.UserInfo{Username: "eve"}}, http.StatusOK
		case spec.Token == "narrow":
			return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: spec.Audiences, User: authenticationv1.UserInfo{Username: "ned"}}, http.StatusOK
		case strings.HasPrefix(spec.Token, "good"):
			return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"team": {"a"}},
			}}, http.StatusOK
		}
		return authenticationv1.TokenReviewStatus{User: authenticationv1.UserInfo{Username: "mallory"}}, http.StatusOK
	}
	webhook.Server = httptest.NewTLSServer(webhook)
	t.Cleanup(webhook.Close)
	file := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	file.Clusters["w"] = &clientcmdapi.Cluster{Server: webhook.URL + "/review", CertificateAuthorityData: authority}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "w", AuthInfo: "u"}
	file.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "webhook")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	config := serve(t, "--authentication-token-webhook-config-file="+path, "--authentication-token-webhook-version="+version)

	want := authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev", "system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"team": {"a"}}}
	for range 3 {
		if user, err := whoami(config, "good"); err != nil || !reflect.DeepEqual(user, want) {
			t.Errorf("%+v %v", user, err)
		}
	}
	if times := webhook.times("good"); times != 1 {
		t.Errorf("asked %d times about a token that holds", times)
	}
	for _, token := range []string{"bad", "wrong", "elsewhere"} {
		_, err := whoami(config, token)
		told(t, token, err, apierrors.IsUnauthorized)
	}
	if user, err := whoami(config, "narrow"); err != nil || user.Username != "ned" {
		t.Error(user, err)
	}
	// An error is not cached, and a temporary failure is retried.
	before := webhook.times("wrong")
	_, err := whoami(config, "wrong")
	if told(t, "wrong", err, apierrors.IsUnauthorized); webhook.times("wrong") == before {
		t.Error("an error is cached")
	}
	if _, err = whoami(config, "fails"); !apierrors.IsUnauthorized(err) {
		t.Error(err)
	}
	if times := webhook.times("fails"); times != 5 {
		t.Errorf("asked %d times while it fails", times)
	}
	webhook.mutex.Lock()
	failing = 0
	webhook.mutex.Unlock()
	if _, err = whoami(config, "recovers"); err == nil {
		t.Error("the webhook does not know the token")
	}

	review := func(token string, audiences ...string) authenticationv1.TokenReviewStatus {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status
	}
	if status := review("narrow", "one", "two"); !status.Authenticated || !reflect.DeepEqual(status.Audiences, []string{"one", "two"}) {
		t.Errorf("%+v", status)
	}
	if status := review("good-2", "one"); status.Authenticated {
		t.Errorf("a webhook that knows no audiences vouches for the API's only: %+v", status)
	}
	if status := review("wrong"); status.Authenticated || !strings.Contains(status.Error, "no database") {
		t.Errorf("%+v", status)
	}
	webhook.Close()
	if _, err := whoami(config, "good"); err != nil {
		t.Error("an answer is cached", err)
	}
	if _, err := whoami(config, "good-3"); !apierrors.IsUnauthorized(err) {
		t.Error("nobody can say", err)
	}
}
