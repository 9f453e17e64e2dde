package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
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
