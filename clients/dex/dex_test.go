// Package dex has a test with an OpenID provider that many clusters use: Dex, in the test's own process.
package dex

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
	"gopkg.in/square/go-jose.v2"
)

const (
	clientID, clientSecret = "kubernetes", "of-the-plugin"
	callback               = "http://127.0.0.1:8000"
	email, password        = "jane@example.com", "password"
)

// A Dex with one user and one client.
type provider struct {
	*httptest.Server
	storage storage.Storage
	issuer  string
}

func newProvider(t *testing.T) *provider {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	var handler http.Handler
	p := &provider{storage: memory.New(logger)}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(p.Close)
	p.issuer = p.URL + "/dex"
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	user := storage.Password{Email: email, Hash: hash, Username: "jane", UserID: "7"}
	if err := p.storage.CreatePassword(user); err != nil {
		t.Fatal(err)
	}
	if err := p.storage.CreateClient(storage.Client{ID: clientID, Secret: clientSecret, RedirectURIs: []string{callback}, Name: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	if err := p.storage.CreateConnector(storage.Connector{ID: server.LocalConnector, Type: server.LocalConnector, Name: "Email"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	handler, err = server.NewServer(ctx, server.Config{
		Issuer: p.issuer, Storage: p.storage, SkipApprovalScreen: true, PasswordConnector: server.LocalConnector,
		Logger: logger, Web: server.WebConfig{WebFS: web.FS()}, PrometheusRegistry: prometheus.NewRegistry(), HealthChecker: gosundheit.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *provider) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// Asks for tokens, and returns the ID token.
func (p *provider) exchange(t *testing.T, form url.Values) string {
	t.Helper()
	form.Set("client_id", clientID)
	form.Set("client_secret", clientSecret)
	answer, err := p.Client().PostForm(p.issuer+"/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var tokens struct {
		IDToken string `json:"id_token"`
	}
	if err := json.Unmarshal(text, &tokens); err != nil || tokens.IDToken == "" {
		t.Fatalf("%d %s %v", answer.StatusCode, text, err)
	}
	return tokens.IDToken
}

// Logs in by a password grant.
func (p *provider) grant(t *testing.T) string {
	t.Helper()
	return p.exchange(t, url.Values{"grant_type": {"password"}, "scope": {"openid email profile"}, "username": {email}, "password": {password}})
}

// Logs in as a person does: the form of the local connector, then the code at the client's address.
func (p *provider) login(t *testing.T, password string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := *p.Client()
	browser.Jar = jar
	browser.CheckRedirect = func(request *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(request.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	query := url.Values{"client_id": {clientID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid email profile"}, "state": {"s"}}
	page, err := browser.Get(p.issuer + "/auth?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	answer, err := browser.PostForm(page.Request.URL.String(), url.Values{"login": {email}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	place, err := answer.Location()
	if err != nil {
		return "" // the form again
	}
	return p.exchange(t, url.Values{"grant_type": {"authorization_code"}, "code": {place.Query().Get("code")}, "redirect_uri": {callback}})
}

// Signs with a new key from now on. What the key before signed still holds while `keeps` says so.
func (p *provider) rotate(t *testing.T, id string, keeps bool) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key := func(key any) *jose.JSONWebKey {
		return &jose.JSONWebKey{Key: key, KeyID: id, Algorithm: "RS256", Use: "sig"}
	}
	err = p.storage.UpdateKeys(func(keys storage.Keys) (storage.Keys, error) {
		old := storage.VerificationKey{PublicKey: keys.SigningKeyPub, Expiry: time.Now().Add(time.Hour)}
		keys.VerificationKeys = append(keys.VerificationKeys, old)
		if !keeps {
			keys.VerificationKeys = nil
		}
		keys.SigningKey, keys.SigningKeyPub = key(private), key(private.Public())
		keys.NextRotation = time.Now().Add(time.Hour)
		return keys, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A server that believes the provider.
type api struct {
	url    string
	client http.Client
}

func serve(t *testing.T, flags ...string) *api {
	program := os.Getenv("PINTLE")
	if program == "" {
		t.Skip("skipped: PINTLE does not name the program")
	}
	place := t.TempDir()
	command := exec.Command(program, append([]string{"serve", "--data-dir=" + place, "--secure-port=0"}, flags...)...)
	log := &bytes.Buffer{}
	command.Stderr = log
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, is := strings.Cut(line, "url=")
	if err != nil || !is {
		t.Fatal(line, err)
	}
	authority, err := os.ReadFile(filepath.Join(place, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	server := &api{url: strings.Fields(address)[0]}
	server.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return server
}

// Who holds a token, as the server sees it, and the code of its answer.
func (a *api) whoami(t *testing.T, token string) (name string, groups []string, code int) {
	t.Helper()
	body := `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`
	request, err := http.NewRequestWithContext(t.Context(), "POST", a.url+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := a.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var review struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	if answer.StatusCode == http.StatusCreated {
		if err := json.NewDecoder(answer.Body).Decode(&review); err != nil {
			t.Fatal(err)
		}
	}
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, answer.StatusCode
}

func (a *api) check(t *testing.T, what, token, want string, wantCode int) {
	t.Helper()
	name, groups, code := a.whoami(t, token)
	if name != want || code != wantCode {
		t.Errorf("%s: %s, %v, %d", what, name, groups, code)
	}
}

func TestPeopleLogInAtDex(t *testing.T) {
	provider := newProvider(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, provider.authority(), 0o600); err != nil {
		t.Fatal(err)
	}
	server := serve(t, "--oidc-issuer-url="+provider.issuer, "--oidc-client-id="+clientID, "--oidc-ca-file="+ca,
		"--oidc-username-claim=email", "--oidc-username-prefix=dex:", "--oidc-required-claim=name=jane")
	other := serve(t, "--oidc-issuer-url="+provider.issuer, "--oidc-client-id=someone-else", "--oidc-ca-file="+ca, "--oidc-username-claim=email")
	const jane = "dex:" + email

	granted := provider.grant(t)
	eventually(t, "the provider's keys are known", func() bool {
		_, _, code := server.whoami(t, granted)
		return code == http.StatusCreated
	})
	server.check(t, "a password grant", granted, jane, http.StatusCreated)
	server.check(t, "the form", provider.login(t, password), jane, http.StatusCreated)
	if provider.login(t, "wrong") != "" {
		t.Error("Dex lets anybody in")
	}
	other.check(t, "a token for somebody else", granted, "", http.StatusUnauthorized)
	parts := strings.Split(granted, ".")
	server.check(t, "a signature of nothing", parts[0]+"."+parts[1]+".", "", http.StatusUnauthorized)

	// Keys change: new tokens hold at once, and old ones as long as the provider tells their key.
	provider.rotate(t, "second", true)
	eventually(t, "the new key is fetched", func() bool {
		name, _, _ := server.whoami(t, provider.grant(t))
		return name == jane
	})
	server.check(t, "the key before", granted, jane, http.StatusCreated)
	provider.rotate(t, "third", false)
	latest := provider.grant(t)
	eventually(t, "the third key is fetched", func() bool {
		name, _, _ := server.whoami(t, latest)
		return name == jane
	})

	// Who is known stays so while the provider is away.
	provider.Close()
	server.check(t, "a provider that is away", latest, jane, http.StatusCreated)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(fmt.Sprint("not in time: ", what))
		}
	}
}
