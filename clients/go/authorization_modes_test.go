package clients

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file are those of test/integration/auth/auth_test.go with the same names.

const (
	aPod     = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"%s},"spec":{"containers":[{"name":"foo","image":"bar/foo"}]}}`
	tokens   = "abc123,alice,1\nxyz987,bob,2\n"
	ofAlice  = `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}`
	podsOfNs = "/api/v1/namespaces/NS/pods"
)

// The requests, in order, each with the code of its response if it is allowed. NS is the
// namespace.
var everyRequest = []struct {
	verb, path, body string
	code             int
}{
	{"GET", "/api/v1/pods", "", 200},
	{"GET", podsOfNs, "", 200},
	{"POST", podsOfNs, aPod, 201},
	{"PUT", podsOfNs + "/a", aPod, 200},
	{"GET", podsOfNs + "/a", "", 200},
	// The pod has no node yet.
	{"GET", podsOfNs + "/a/exec", "", 400},
	{"POST", podsOfNs + "/a/exec", "", 400},
	{"PUT", podsOfNs + "/a/exec", "", 405},
	{"GET", podsOfNs + "/a/portforward", "", 400},
	{"POST", podsOfNs + "/a/portforward", "", 400},
	{"PUT", podsOfNs + "/a/portforward", "", 405},
	{"PATCH", podsOfNs + "/a", `{%s}`, 200},
	{"DELETE", podsOfNs + "/a", `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0%s}`, 200},
	{"OPTIONS", podsOfNs, "", 405},
	{"OPTIONS", podsOfNs + "/a", "", 405},
	{"HEAD", podsOfNs, "", 405},
	{"HEAD", podsOfNs + "/a", "", 405},
	{"TRACE", podsOfNs, "", 405},
	{"TRACE", podsOfNs + "/a", "", 405},
	{"NOSUCHVERB", podsOfNs, "", 405},
	{"GET", "/api/v1/services", "", 200},
	{"GET", "/api/v1/namespaces/NS/services", "", 200},
	{"POST", "/api/v1/namespaces/NS/services", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"%s},"spec":{"ports":[{"port":8080}]}}`, 201},
	{"POST", "/api/v1/namespaces/NS/endpoints", `{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"a"%s}}`, 201},
	{"GET", "/api/v1/namespaces/NS/services/a/proxy/", "", 503},
	{"DELETE", "/api/v1/namespaces/NS/endpoints/a", "", 200},
	{"DELETE", "/api/v1/namespaces/NS/services/a", "", 200},
	{"GET", "/api/v1/namespaces/NS/replicationcontrollers", "", 200},
	{"GET", "/api/v1/nodes", "", 200},
	{"POST", "/api/v1/nodes", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"%s}}`, 201},
	{"PUT", "/api/v1/nodes/a", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"%s}}`, 200},
	{"DELETE", "/api/v1/nodes/a", "", 200},
	{"GET", "/api/v1/namespaces/NS/events", "", 200},
	{"GET", "/api/v1/namespaces/NS/bindings", "", 405},
	{"POST", podsOfNs, aPod, 201},
	{"POST", "/api/v1/namespaces/NS/bindings", `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"a"%s},"target":{"kind":"Node","name":"10.10.10.10"}}`, 201},
	{"PUT", "/api/v1/namespaces/NS/bindings/a", `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"a"%s}}`, 404},
	{"GET", "/api/v1/namespaces/NS/bindings/a", "", 404},
	{"DELETE", "/api/v1/namespaces/NS/bindings/a", "", 404},
	{"GET", "/api/v1/foo", "", 404},
	{"POST", "/api/v1/namespaces/NS/foo", `{"foo":"foo"%s}`, 404},
	{"PUT", "/api/v1/namespaces/NS/foo/a", `{"foo":"foo"%s}`, 404},
	{"DELETE", "/api/v1/namespaces/NS/foo", "", 404},
	{"GET", "/api/v1/redirect/namespaces/NS/nodes/a", "", 404},
	{"GET", "/", "", 200},
	{"GET", "/api", "", 200},
	{"GET", "/healthz", "", 200},
	{"GET", "/version", "", 200},
	{"GET", "/invalidURL", "", 404},
}

// Sends a request with a token; returns the code.
func send(t *testing.T, config *rest.Config, token, impersonated, verb, path, body string) (int, string) {
	t.Helper()
	if token != "" {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), verb, config.Host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if verb == "PATCH" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if impersonated != "" {
		request.Header.Set("Impersonate-User", impersonated)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(verb, path, err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// Sends every request and checks its response with `is`.
func sendAll(t *testing.T, config *rest.Config, token, impersonated, namespace string, is func(code, usual int) bool) {
	t.Helper()
	for _, request := range everyRequest {
		body := request.body
		if body != "" {
			body = fmt.Sprintf(body, "")
		}
		path := strings.Replace(request.path, "NS", namespace, 1)
		if code, text := send(t, config, token, impersonated, request.verb, path, body); !is(code, request.code) {
			t.Errorf("%s %s: %d %s", request.verb, path, code, text)
		}
	}
}

func usually(code, usual int) bool { return code == usual }

func always(wanted int) func(int, int) bool {
	return func(code, _ int) bool { return code == wanted }
}

func createNamespace(t *testing.T, config *rest.Config, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A server with alice and bob, by tokens, and flags.
func serveAliceAndBob(t *testing.T, flags ...string) *rest.Config {
	file := filepath.Join(t.TempDir(), "tokens.csv")
	writeFile(t, file, tokens)
	config := serve(t, append([]string{"--token-auth-file=" + file, "--disable-admission-plugins=ServiceAccount"}, flags...)...)
	config.QPS = -1
	return config
}

func TestAuthModeAlwaysAllow(t *testing.T) {
	config := serveAliceAndBob(t, "--authorization-mode=AlwaysAllow")
	createNamespace(t, config, "auth-always-allow")
	sendAll(t, config, "", "", "auth-always-allow", usually)
}

func TestAuthModeAlwaysDeny(t *testing.T) {
	config := serveAliceAndBob(t, "--authorization-mode=AlwaysDeny")
	createNamespace(t, config, "auth-always-deny")
	sendAll(t, config, "abc123", "", "auth-always-deny", always(http.StatusForbidden))
}

func serveWithPolicy(t *testing.T) *rest.Config {
	file := filepath.Join(t.TempDir(), "allowalice.jsonl")
	writeFile(t, file, ofAlice+"\n")
	config := serveAliceAndBob(t, "--authorization-mode=ABAC", "--authorization-policy-file="+file)
	createNamespace(t, config, "auth-policy")
	return config
}

func TestAliceNotForbiddenOrUnauthorized(t *testing.T) {
	sendAll(t, serveWithPolicy(t), "abc123", "", "auth-policy", usually)
}

func TestBobIsForbidden(t *testing.T) {
	sendAll(t, serveWithPolicy(t), "xyz987", "", "auth-policy", always(http.StatusForbidden))
}

func TestUnknownUserIsUnauthorized(t *testing.T) {
	sendAll(t, serveWithPolicy(t), "qwe456", "", "auth-policy", always(http.StatusUnauthorized))
}

// A server whose webhook allows what a function does.
func serveWithRule(t *testing.T, allows func(spec authorizationv1.SubjectAccessReviewSpec) bool, flags ...string) (*rest.Config, *ruler) {
	webhook := newRuler(t)
	webhook.set(func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allows(spec), Denied: !allows(spec)}, http.StatusOK
	})
	file := kubeconfigOf(t, webhook.Server, filepath.Join(t.TempDir(), "webhook"))
	flags = append([]string{"--authorization-mode=Webhook", "--authorization-webhook-version=v1", "--authorization-webhook-config-file=" + file,
		"--authorization-webhook-cache-authorized-ttl=0s", "--authorization-webhook-cache-unauthorized-ttl=0s"}, flags...)
	return serveAliceAndBob(t, flags...), webhook
}

// Alice may impersonate service accounts and do everything else; bob may impersonate anyone, and nothing else.
func TestImpersonateIsForbidden(t *testing.T) {
	config, _ := serveWithRule(t, func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		impersonates := spec.ResourceAttributes != nil && strings.HasPrefix(spec.ResourceAttributes.Verb, "impersonate")
		switch {
		case spec.User == "alice" && impersonates:
			return spec.ResourceAttributes.Resource == "serviceaccounts"
		case spec.User == "bob":
			return impersonates
		}
		return spec.User == "alice" || strings.HasPrefix(spec.User, "system:serviceaccount:")
	})
	createNamespace(t, config, "auth-impersonate-forbidden")
	isAllowed := func(code, _ int) bool { return code != http.StatusForbidden }
	sendAll(t, config, "xyz987", "", "auth-impersonate-forbidden", always(http.StatusForbidden))
	sendAll(t, config, "xyz987", "alice", "auth-impersonate-forbidden", isAllowed)
	sendAll(t, config, "abc123", "bob", "auth-impersonate-forbidden", always(http.StatusForbidden))
	sendAll(t, config, "xyz987", "system:serviceaccount:default:default", "auth-impersonate-forbidden", isAllowed)
}

func TestAuthorizationAttributeDetermination(t *testing.T) {
	config, webhook := serveWithRule(t, func(authorizationv1.SubjectAccessReviewSpec) bool { return false })
	for path, want := range map[string]authorizationv1.ResourceAttributes{
		"/api/v1/pods":                                  {Verb: "list", Version: "v1", Resource: "pods"},
		"/apis/extensions/v1/pods":                      {Verb: "list", Group: "extensions", Version: "v1", Resource: "pods"},
		"/apis/autoscaling/v1/horizontalpodautoscalers": {Verb: "list", Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"},
	} {
		send(t, config, "xyz987", "", "GET", path, "")
		if asked := webhook.take("bob"); len(asked) != 1 || asked[0].ResourceAttributes == nil || *asked[0].ResourceAttributes != want {
			t.Errorf("%s: %+v", path, asked)
		}
	}
}

// The users that are allowed by one attribute of the request; a row is a method, a path and the
// expected code.
func testAuthorizationBy(t *testing.T, allows func(spec authorizationv1.SubjectAccessReviewSpec) bool, namespaces []string, rows []string) {
	config, _ := serveWithRule(t, allows)
	for _, name := range namespaces {
		createNamespace(t, config, name)
	}
	for _, row := range rows {
		fields := strings.Fields(row)
		body := ""
		if fields[0] == "POST" {
			body = fmt.Sprintf(aPod, "")
			if strings.HasSuffix(fields[1], "/services") {
				body = `{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"},"spec":{"ports":[{"port":8080}]}}`
			}
		}
		if code, text := send(t, config, "xyz987", "", fields[0], fields[1], body); fmt.Sprint(code) != fields[2] {
			t.Errorf("%s: %d %s", row, code, text)
		}
	}
}

func TestNamespaceAuthorization(t *testing.T) {
	testAuthorizationBy(t, func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace == "auth-namespace"
	}, []string{"auth-namespace", "foo"}, []string{
		"POST /api/v1/namespaces/auth-namespace/pods 201",
		"GET /api/v1/namespaces/auth-namespace/pods 200",
		"GET /api/v1/namespaces/auth-namespace/pods/a 200",
		"DELETE /api/v1/namespaces/auth-namespace/pods/a 200",
		"POST /api/v1/namespaces/foo/pods 403",
		"GET /api/v1/namespaces/foo/pods 403",
		"GET /api/v1/namespaces/foo/pods/a 403",
		"DELETE /api/v1/namespaces/foo/pods/a 403",
		"POST /api/v1/namespaces/default/pods 403",
		"GET /api/v1/pods 403",
		"GET /api/v1/namespaces/default/pods/a 403",
		"DELETE /api/v1/namespaces/default/pods/a 403",
	})
}

func TestKindAuthorization(t *testing.T) {
	testAuthorizationBy(t, func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.ResourceAttributes != nil && spec.ResourceAttributes.Resource == "services"
	}, []string{"auth-kind"}, []string{
		"POST /api/v1/namespaces/auth-kind/services 201",
		"GET /api/v1/namespaces/auth-kind/services 200",
		"GET /api/v1/namespaces/auth-kind/services/a 200",
		"DELETE /api/v1/namespaces/auth-kind/services/a 200",
		"POST /api/v1/namespaces/auth-kind/pods 403",
		"GET /api/v1/namespaces/auth-kind/pods 403",
		"GET /api/v1/namespaces/auth-kind/pods/a 403",
		"DELETE /api/v1/namespaces/auth-kind/pods/a 403",
	})
}

func TestReadOnlyAuthorization(t *testing.T) {
	testAuthorizationBy(t, func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.ResourceAttributes != nil && slices.Contains([]string{"get", "list", "watch"}, spec.ResourceAttributes.Verb)
	}, []string{"auth-read-only"}, []string{
		"POST /api/v1/namespaces/auth-read-only/pods 403",
		"GET /api/v1/namespaces/auth-read-only/pods 200",
		"GET /api/v1/namespaces/default/pods/a 404",
	})
}

// A certificate with invalid alternative names authenticates its user.
func TestSloppySANCertificates(t *testing.T) {
	directory := t.TempDir()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, signer = template, key
		}
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			certificate = &x509.Certificate{Raw: der} // this parser does not take the names
		}
		return certificate, key
	}
	// DNS:"", DNS:"example.com.", email:"not-an-email"
	names, err := asn1.Marshal([]asn1.RawValue{
		{Class: asn1.ClassContextSpecific, Tag: 2},
		{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte("example.com.")},
		{Class: asn1.ClassContextSpecific, Tag: 1, Bytes: []byte("not-an-email")},
	})
	if err != nil {
		t.Fatal(err)
	}
	sloppy := []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "sloppy-san-root"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtraExtensions: sloppy}
	authority, authorityKey := issue(root, nil, nil)
	client, clientKey := issue(&x509.Certificate{Subject: pkix.Name{CommonName: "sloppy-san-client"}, ExtraExtensions: sloppy,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, root, authorityKey)
	file := filepath.Join(directory, "ca.crt")
	writeFile(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})))
	config := rest.AnonymousClientConfig(serve(t, "--client-ca-file="+file))
	der, err := x509.MarshalECPrivateKey(clientKey)
	if err != nil {
		t.Fatal(err)
	}
	config.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: client.Raw})
	config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	code, text := send(t, config, "", "", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
	var review struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	if err := json.Unmarshal([]byte(text), &review); err != nil || code != http.StatusCreated || review.Status.UserInfo.Username != "sloppy-san-client" {
		t.Errorf("%d %s %v", code, text, err)
	}
}
