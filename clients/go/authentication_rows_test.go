package clients

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file are those of test/integration/apiserver/oidc/oidc_test.go with the same names.

type tree = map[string]any

// An AuthenticationConfiguration with these authenticators.
func authenticators(t *testing.T, all ...tree) string {
	text, err := json.Marshal(tree{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": all})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The authenticator of a provider; it adds a prefix to user names. `more` has further members.
func authenticator(p *provider, prefix string, more tree) tree {
	mappings := tree{"username": tree{"expression": "'" + prefix + "-' + claims.sub"}}
	maps.Copy(mappings, mappingsOf(more))
	own := tree{"issuer": tree{"url": p.URL, "audiences": []string{"pintle", "foo", "bar", "baz"}, "audienceMatchPolicy": "MatchAny", "certificateAuthority": p.authority()}}
	for name, value := range more {
		if name != "claimMappings" {
			own[name] = value
		}
	}
	own["claimMappings"] = mappings
	return own
}

func mappingsOf(more tree) tree {
	mappings, _ := more["claimMappings"].(tree)
	return mappings
}

// True if the server's metrics have counted an event.
func hasCounted(t *testing.T, config *rest.Config, metric, label string) func() bool {
	return func() bool {
		metrics, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(metrics), "\n") {
			if strings.HasPrefix(line, metric+"{") && strings.Contains(line, label) {
				return true
			}
		}
		return false
	}
}

func awaitUser(t *testing.T, config *rest.Config, token, name string) authenticationv1.UserInfo {
	t.Helper()
	var user authenticationv1.UserInfo
	eventually(t, "the token is "+name+"'s", func() bool {
		user, _ = whoami(config, token)
		return user.Username == name
	})
	return user
}

func TestStructuredAuthenticationConfigCEL(t *testing.T) {
	rule := func(expression, message string) []any {
		return []any{tree{"expression": expression, "message": message}}
	}
	roles := func(prefix string) tree {
		return tree{"expression": `(claims.roles.split(",") + claims.other_roles.split(",")).map(role, "` + prefix + `:" + role)`}
	}
	everyone := []string{"system:authenticated"}
	with := func(extra ...string) map[string]authenticationv1.ExtraValue {
		values := map[string]authenticationv1.ExtraValue{}
		for index := 0; index < len(extra); index += 2 {
			values[extra[index]] = authenticationv1.ExtraValue{extra[index+1]}
		}
		return values
	}
	const id = "authentication.kubernetes.io/credential-id"
	jane := func(groups []string, uid string, extra map[string]authenticationv1.ExtraValue) *authenticationv1.UserInfo {
		return &authenticationv1.UserInfo{Username: "k8s-jane", Groups: groups, UID: uid, Extra: extra}
	}
	for name, row := range map[string]struct {
		more, claims tree
		want         *authenticationv1.UserInfo
	}{
		"username CEL expression is ok": {nil, tree{"jti": "0123456789"}, jane(everyone, "", with(id, "JTI=0123456789"))},
		"groups CEL expression is ok": {tree{"claimMappings": tree{"groups": roles("prefix")}}, tree{"roles": "foo,bar", "other_roles": "baz,qux"},
			jane([]string{"prefix:foo", "prefix:bar", "prefix:baz", "prefix:qux", "system:authenticated"}, "", nil)},
		"claim validation rule fails": {tree{"claimValidationRules": rule(`claims.hd == "example.com"`, "the hd claim must be set to example.com")}, tree{"hd": "notexample.com"}, nil},
		"extra mapping CEL expressions are ok": {tree{
			"claimMappings":       tree{"extra": []any{tree{"key": "example.org/foo", "valueExpression": "'bar'"}, tree{"key": "example.org/baz", "valueExpression": "claims.baz"}}},
			"userValidationRules": rule("'bar' in user.extra['example.org/foo'] && 'qux' in user.extra['example.org/baz']", "example.org/foo must be bar")},
			tree{"baz": "qux", "jti": "0123456789"}, jane(everyone, "", with(id, "JTI=0123456789", "example.org/foo", "bar", "example.org/baz", "qux"))},
		"uid CEL expression is ok": {tree{"claimMappings": tree{"uid": tree{"expression": "claims.uid"}}}, tree{"uid": "1234"}, jane(everyone, "1234", nil)},
		"user validation rule fails": {tree{"claimMappings": tree{"groups": roles("system")}, "userValidationRules": rule("user.groups.all(group, !group.startsWith('system:'))", "groups cannot use the reserved system: prefix")},
			tree{"roles": "foo,bar", "other_roles": "baz,qux"}, nil},
		"multiple audiences check with claim validation rule is ok": {tree{"claimMappings": tree{"uid": tree{"expression": "claims.uid"}},
			"claimValidationRules": rule(`sets.equivalent(claims.aud, ["bar", "foo", "baz"])`, "aud claim must be exactly match list")},
			tree{"aud": []string{"foo", "bar", "baz"}, "uid": "1234"}, jane(everyone, "1234", nil)},
		"non-string jti claim doesn't result in authentication error": {nil, tree{"jti": 1234}, jane(everyone, "", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			p, file := newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
			probe := newProvider(t)
			writeFile(t, file, authenticators(t, authenticator(p, "k8s", row.more), authenticator(probe, "probe", nil)))
			config := serve(t, "--authentication-config="+file)
			awaitUser(t, config, probe.token(t, nil), "probe-jane")
			if row.want != nil {
				if user := awaitUser(t, config, p.token(t, row.claims), "k8s-jane"); !reflect.DeepEqual(user, *row.want) {
					t.Errorf("%+v", user)
				}
				return
			}
			eventually(t, "the provider has been asked", func() bool { return p.fetches() > 0 })
			for range 5 {
				_, err := whoami(config, p.token(t, row.claims))
				told(t, name, err, apierrors.IsUnauthorized)
			}
		})
	}
}

func TestStructuredAuthenticationConfigReload(t *testing.T) {
	p := newProvider(t)
	valid, empty := authenticators(t, authenticator(p, "k8s", nil)), authenticators(t)

	unknown := authenticator(p, "k8s", nil)
	unknown["issuer"].(tree)["certificateAuthority"] = ""
	withoutAuthority := authenticators(t, unknown)
	typo := strings.Replace(valid, "claims.sub", "claimss.sub", 1)
	for name, row := range map[string]struct{ before, who, after, then, counted string }{
		"old valid config to new valid config":                                             {valid, "k8s-jane", authenticators(t, authenticator(p, "panda", nil)), "panda-jane", "success"},
		"old empty config to new valid config":                                             {empty, "", authenticators(t, authenticator(p, "snorlax", nil)), "snorlax-jane", "success"},
		"old invalid config to new valid config":                                           {withoutAuthority, "", valid, "k8s-jane", "success"},
		"old valid config to new structurally invalid config (should be ignored)":          {valid, "k8s-jane", typo, "k8s-jane", "failure"},
		"old valid config to new valid empty config (should cause tokens to stop working)": {valid, "k8s-jane", empty, "", "success"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "authentication.yaml")
			writeFile(t, file, row.before)
			config := serve(t, "--authentication-config="+file)
			check := func(name string) {
				t.Helper()
				token := p.token(t, tree{"jti": unique("token")})
				if name != "" {
					awaitUser(t, config, token, name)
				} else if _, err := whoami(config, token); !apierrors.IsUnauthorized(err) {
					t.Error(err)
				}
			}
			check(row.who)
			writeFile(t, file, row.after)
			eventually(t, row.counted+" is counted", hasCounted(t, config, "apiserver_authentication_config_controller_automatic_reloads_total", `status="`+row.counted+`"`))
			check(row.then)
			sum := fmt.Sprintf("%x", sha256Of(map[string]string{"success": row.after, "failure": row.before}[row.counted]))
			if !hasCounted(t, config, "apiserver_authentication_config_controller_last_config_info", sum)() {
				t.Error("the metrics do not tell the configuration that counts")
			}
		})
	}
}

func TestStructuredAuthenticationDiscoveryURL(t *testing.T) {
	for name, row := range map[string]struct{ issuer, path string }{
		"discovery url and issuer url with no path":      {"https://example.com", ""},
		"discovery url has path, issuer url has no path": {"https://example.com", "/c/d/bar"},
		"discovery url has no path, issuer url has path": {"https://example.com/a/b/foo", ""},
		"discovery url and issuer url have paths":        {"https://example.com/a/b/foo", "/c/d/bar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, file := newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
			// Another server has the document; the keys stay where they are.
			documents := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path != row.path+"/.well-known/openid-configuration" {
					http.NotFound(w, request)
					return
				}
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, row.issuer, p.URL+"/keys")
			}))
			t.Cleanup(documents.Close)
			own := authenticator(p, "k8s", tree{"claimValidationRules": []any{tree{"expression": `claims.hd == "example.com"`, "message": "another domain"}}})
			own["issuer"].(tree)["url"] = row.issuer
			own["issuer"].(tree)["discoveryURL"] = documents.URL + row.path + "/.well-known/openid-configuration"
			own["issuer"].(tree)["certificateAuthority"] = p.authority() + string(authorityOf(documents))
			writeFile(t, file, authenticators(t, own))
			config := serve(t, "--authentication-config="+file)
			awaitUser(t, config, p.token(t, tree{"iss": row.issuer, "hd": "example.com"}), "k8s-jane")
			for _, claims := range []tree{{"iss": p.URL, "hd": "example.com"}, {"iss": documents.URL, "hd": "example.com"}, {"iss": row.issuer, "hd": "other"}} {
				_, err := whoami(config, p.token(t, claims))
				told(t, fmt.Sprint(claims), err, apierrors.IsUnauthorized)
			}
		})
	}
}

func TestMultipleJWTAuthenticators(t *testing.T) {
	one, two, file := newProvider(t), newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
	writeFile(t, file, authenticators(t,
		authenticator(one, "k8s", tree{"claimValidationRules": []any{tree{"expression": `claims.hd == "example.com"`, "message": "another domain"}}}),
		authenticator(two, "not", tree{"claimMappings": tree{"groups": tree{"expression": `(claims.roles.split(",") + claims.other_roles.split(",")).map(role, "system:" + role)`}, "uid": tree{"expression": "claims.uid"}}})))
	config := serve(t, "--authentication-config="+file)
	user := awaitUser(t, config, one.token(t, tree{"hd": "example.com", "aud": "foo"}), "k8s-jane")
	if !reflect.DeepEqual(user.Groups, []string{"system:authenticated"}) {
		t.Errorf("%+v", user)
	}
	user = awaitUser(t, config, two.token(t, tree{"roles": "foo,bar", "other_roles": "baz,qux", "aud": "bar", "uid": "1234"}), "not-jane")
	want := []string{"system:foo", "system:bar", "system:baz", "system:qux", "system:authenticated"}
	if !reflect.DeepEqual(user.Groups, want) || user.UID != "1234" {
		t.Errorf("%+v", user)
	}
	_, err := whoami(config, one.token(t, tree{"iss": two.URL, "uid": "1", "roles": "a", "other_roles": "b"}))
	told(t, "one signs for the other", err, apierrors.IsUnauthorized)
}

// The metrics of the keys of each issuer: its hash, and the hash of its keys.
func keyMetrics(t *testing.T, config *rest.Config) map[string]string {
	text, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	label := func(line, name string) string {
		_, rest, _ := strings.Cut(line, name+`="`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	found := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, is := strings.CutPrefix(line, "apiserver_authentication_jwt_authenticator_jwks_fetch_last_"); is {
			name, _, _ := strings.Cut(rest, "{")
			found[name+" "+label(rest, "jwt_issuer_hash")+" "+label(rest, "result")] = label(rest, ",hash")
		}
	}
	return found
}

func TestJWKSMetricsCleanupOnIssuerRemoval(t *testing.T) {
	one, two, file := newProvider(t), newProvider(t), filepath.Join(t.TempDir(), "authentication.yaml")
	writeFile(t, file, authenticators(t, authenticator(one, "one", nil), authenticator(two, "two", nil)))
	config := serve(t, "--authentication-config="+file)
	awaitUser(t, config, one.token(t, nil), "one-jane")
	awaitUser(t, config, two.token(t, nil), "two-jane")
	hash := func(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }
	expected := func(providers ...*provider) map[string]string {
		want := map[string]string{}
		for _, p := range providers {
			answer := httptest.NewRecorder()
			p.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/keys", nil))
			issuer := hash([]byte(p.URL))
			want["key_set_info "+issuer+" "] = hash(answer.Body.Bytes())
			want["timestamp_seconds "+issuer+" success"] = ""
		}
		return want
	}
	if found, want := keyMetrics(t, config), expected(one, two); !reflect.DeepEqual(found, want) {
		t.Errorf("%v, not %v", found, want)
	}
	// New keys replace the old ones.
	two.rotate(t, "second")
	awaitUser(t, config, two.token(t, nil), "two-jane")
	if found, want := keyMetrics(t, config), expected(one, two); !reflect.DeepEqual(found, want) {
		t.Errorf("%v, not %v", found, want)
	}
	writeFile(t, file, authenticators(t, authenticator(one, "one", nil)))
	eventually(t, "only the first issuer has metrics", func() bool {
		return reflect.DeepEqual(keyMetrics(t, config), expected(one))
	})
}

// A proxy of CONNECT requests on a Unix socket, and the hosts that it was asked for.
type connectProxy struct {
	path  string
	mutex sync.Mutex
	hosts []string
}

func newConnectProxy(t *testing.T) *connectProxy {
	directory, err := os.MkdirTemp("", "proxy") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	p := &connectProxy{path: filepath.Join(directory, "socket")}
	listener, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return p
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	p.mutex.Lock()
	p.hosts = append(p.hosts, request.Host)
	p.mutex.Unlock()
	backend, err := net.Dial("tcp", request.Host)
	if err != nil || request.Method != http.MethodConnect {
		http.Error(w, fmt.Sprint(request.Method, err), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	client, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = backend.Close()
		return
	}
	go func() {
		_, _ = io.Copy(backend, client)
		_ = backend.Close()
	}()
	_, _ = io.Copy(client, backend)
	_ = client.Close()
}

// True if the proxy was asked for the provider.
func (p *connectProxy) knows(provider *provider) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Contains(p.hosts, strings.TrimPrefix(provider.URL, "https://"))
}

// The rows "egress proxy is ok" of TestStructuredAuthenticationConfigCEL and "old to new config with
// egress" of TestStructuredAuthenticationConfigReload.
func TestStructuredAuthenticationConfigEgress(t *testing.T) {
	proxy, directory := newConnectProxy(t), t.TempDir()
	egress, file := filepath.Join(directory, "egress.yaml"), filepath.Join(directory, "authentication.yaml")
	writeFile(t, egress, "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"+
		"- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: "+proxy.path+"}}}}\n")
	through := func(p *provider, prefix string) tree {
		one := authenticator(p, prefix, nil)
		one["issuer"].(tree)["egressSelectorType"] = "cluster"
		return one
	}
	first, second := newProvider(t), newProvider(t)
	writeFile(t, file, authenticators(t, through(first, "k8s"), authenticator(second, "direct", nil)))
	config := serve(t, "--authentication-config="+file, "--egress-selector-config-file="+egress)
	awaitUser(t, config, first.token(t, nil), "k8s-jane")
	awaitUser(t, config, second.token(t, nil), "direct-jane")
	if !proxy.knows(first) || proxy.knows(second) {
		t.Error("the proxy was asked for ", proxy.hosts)
	}
	writeFile(t, file, authenticators(t, through(first, "k8s"), through(second, "panda")))
	awaitUser(t, config, second.token(t, nil), "panda-jane")
	if !proxy.knows(second) {
		t.Error("the proxy was not asked for the second provider")
	}
}
