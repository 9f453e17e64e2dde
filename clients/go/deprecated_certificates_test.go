package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	missingSANKey, missingSAN = "missing-san.invalid-cert.kubernetes.io/", "relies on a legacy Common Name field instead of the SAN extension for subject validation"
	sha1Key, insecureSHA1     = "insecure-sha1.invalid-cert.kubernetes.io/", "uses an insecure SHA-1 signature"

	legacyName = "tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead"
	unknown    = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
)

// A certificate authority whose certificates may have faults.
type faultyAuthority struct {
	key         *rsa.PrivateKey
	certificate *x509.Certificate
}

func newFaultyAuthority(t *testing.T) *faultyAuthority {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &faultyAuthority{key, certificate}
}

func (a *faultyAuthority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Starts a server whose certificate is changed before it is signed.
func (a *faultyAuthority) serve(t *testing.T, handler http.Handler, change func(*x509.Certificate)) *httptest.Server {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.ParseIP("127.0.0.1")},
		DNSNames: []string{"*.default.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), SignatureAlgorithm: x509.SHA256WithRSA,
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func withoutNames(certificate *x509.Certificate) {
	certificate.IPAddresses, certificate.DNSNames = nil, nil
}

func withSHA1(certificate *x509.Certificate) { certificate.SignatureAlgorithm = x509.SHA1WithRSA }

// Faults of certificates, with Go's words and upstream's annotation.
var faults = []struct {
	name             string
	change           func(*x509.Certificate)
	words, key, note string
}{
	{"nothing", func(*x509.Certificate) {}, "", "", ""},
	{"no-names", withoutNames, legacyName, missingSANKey, missingSAN},
	{"sha1", withSHA1, unknown + ` (possibly because of "x509: cannot verify signature: insecure algorithm SHA1-RSA" while trying to verify candidate authority certificate "old authority")`, sha1Key, insecureSHA1},
	{"another-common-name", func(c *x509.Certificate) {
		withoutNames(c)
		c.Subject.CommonName = "example.com"
	}, "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs", "", ""},
	{"another-address", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("fd00::1")} },
		"tls: failed to verify certificate: x509: certificate is valid for 10.0.0.1, fd00::1, not 127.0.0.1", "", ""},
	{"ended", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time ", "", ""},
	{"for-clients", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"tls: failed to verify certificate: x509: certificate specifies an incompatible key usage", "", ""},
}

// A server that records its requests, all of them at level Metadata.
type auditedServer struct {
	config *rest.Config
	file   string
}

func serveAudited(t *testing.T, flags ...string) *auditedServer {
	directory := t.TempDir()
	policy, file := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: Metadata}]}")
	flags = append(flags, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	return &auditedServer{serve(t, flags...), file}
}

// The notes about certificates in the events of a request.
func (s *auditedServer) notes(t *testing.T, mark string) map[string]string {
	var found []auditEvent
	eventually(t, "the event is in the log", func() bool {
		found = eventsOf(t, s.file, mark)
		return len(found) > 0
	})
	notes := map[string]string{}
	for key, value := range found[0].Annotations {
		if strings.Contains(key, "invalid-cert") {
			notes[key] = value
		}
	}
	return notes
}

func (s *auditedServer) checkNote(t *testing.T, mark, key, note string) {
	t.Helper()
	want := map[string]string{}
	if key != "" {
		want[key] = note
	}
	if found := s.notes(t, mark); fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("%s: %v, not %v", mark, found, want)
	}
}

func (s *auditedServer) counted(t *testing.T, metric string) (count int) {
	metrics, err := kubernetes.NewForConfigOrDie(s.config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(metrics), "\n") {
		if value, found := strings.CutPrefix(line, metric+" "); found {
			if count, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	t.Fatal("there is no ", metric)
	return 0
}

func (s *auditedServer) checkCounts(t *testing.T, subject string, missingSAN, insecureSHA1 int) {
	t.Helper()
	prefix := "apiserver_" + subject + "_x509_"
	found := [2]int{s.counted(t, prefix+"missing_san_total"), s.counted(t, prefix+"insecure_sha1_total")}
	if found != [2]int{missingSAN, insecureSHA1} {
		t.Errorf("%s: %v, not %d and %d", subject, found, missingSAN, insecureSHA1)
	}
}

// After staging/src/k8s.io/apiserver/pkg/util/x509metrics: certificates that Go's clients refuse, of
// webhooks and of extension API servers.
func TestDeprecatedCertificates(t *testing.T) {
	t.Run("admission webhooks", deprecatedAdmissionWebhooks)
	t.Run("authorization webhook", deprecatedAuthorizationWebhook)
	t.Run("token webhook", deprecatedTokenWebhook)
	t.Run("extension API servers", deprecatedExtensions)
}

func deprecatedAdmissionWebhooks(t *testing.T) {
	authority, server := newFaultyAuthority(t), serveAudited(t)
	client := kubernetes.NewForConfigOrDie(server.config)
	for _, fault := range faults {
		webhook := authority.serve(t, http.HandlerFunc(annotator), fault.change)
		namespace := "fault-" + fault.name
		createNamespace(t, server.config, namespace)
		hook := webhookFor(webhook, namespace)
		hook.ClientConfig.CABundle = authority.pem()
		// Not for the root certificates that a controller publishes in each namespace.
		hook.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "asked", Expression: "object.metadata.name == 'asked'"}}
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: fault.name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook}}
		if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asked"}}, metav1.CreateOptions{})
		if words := fmt.Sprintf("failed calling webhook %q: failed to call webhook: Post \"%s/review?timeout=2s\": %s", hook.Name, webhook.URL, fault.words); fault.words == "" && err != nil ||
			fault.words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %v, not %s", fault.name, err, words)
		}
		key := fault.key
		if key != "" {
			key += "127.0.0.1"
		}
		server.checkNote(t, "/"+namespace+"/configmaps", key, fault.note)
	}
	server.checkCounts(t, "webhooks", 1, 1)
	server.checkCounts(t, "kube_aggregator", 0, 0)
}

// The kubeconfig of a webhook that the flags name; without an authority, any certificate is accepted.
func kubeconfigFor(t *testing.T, server *httptest.Server, authority []byte) string {
	file := clientcmdapi.NewConfig()
	file.Clusters["w"] = &clientcmdapi.Cluster{Server: server.URL + "/review", CertificateAuthorityData: authority, InsecureSkipTLSVerify: authority == nil}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "w"}
	file.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "webhook")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func deprecatedAuthorizationWebhook(t *testing.T) {
	authority := newFaultyAuthority(t)
	webhook := authority.serve(t, http.NotFoundHandler(), withoutNames)
	server := serveAudited(t, "--authorization-mode=RBAC,Webhook", "--authorization-webhook-config-file="+kubeconfigFor(t, webhook, authority.pem()))
	_, err := as(t, server.config, "jane").CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), legacyName) {
		t.Error(err)
	}
	server.checkNote(t, "/default/secrets", missingSANKey+"127.0.0.1", missingSAN)
	server.checkCounts(t, "webhooks", 1, 0)
}

func deprecatedTokenWebhook(t *testing.T) {
	authority := newFaultyAuthority(t)
	webhook := authority.serve(t, http.NotFoundHandler(), withSHA1)
	server := serveAudited(t, "--authentication-token-webhook-config-file="+kubeconfigFor(t, webhook, authority.pem()))
	if code, _ := send(t, server.config, "stranger", "", "GET", "/api/v1/namespaces/default/secrets", ""); code != http.StatusUnauthorized {
		t.Error(code)
	}
	server.checkNote(t, "/default/secrets", sha1Key+"127.0.0.1", insecureSHA1)
	server.checkCounts(t, "webhooks", 0, 1)
}

// A group of an extension API server behind a service whose name is localhost.
func (s *auditedServer) register(t *testing.T, group string, extension *httptest.Server, trust string) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(extension.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(s.config)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%[1]s.example.com"},"spec":{"group":"%[1]s.example.com","version":"v1",
		"groupPriorityMinimum":1000,"versionPriority":10,"service":{"namespace":"default","name":"%[1]s","port":%[2]s},%[3]s}}`, group, port, trust)
	if err := client.RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

func deprecatedExtensions(t *testing.T) {
	authority, server := newFaultyAuthority(t), serveAudited(t)
	client := kubernetes.NewForConfigOrDie(server.config)
	things := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x.example.com/v1","resources":[]}`)
	})
	const anyone = `"insecureSkipTLSVerify":true`
	for _, row := range []struct {
		group, trust string
		change       func(*x509.Certificate)
		key, note    string
	}{
		{"nameless", anyone, withoutNames, missingSANKey, missingSAN},
		{"weak", anyone, withSHA1, sha1Key, insecureSHA1},
		{"sound", anyone, func(*x509.Certificate) {}, "", ""},
	} {
		server.register(t, row.group, authority.serve(t, things, row.change), row.trust)
		path := "/apis/" + row.group + ".example.com/v1/things"
		eventually(t, row.group+" is available", func() bool {
			return client.RESTClient().Get().AbsPath(path).Do(t.Context()).Error() == nil
		})
		if err := client.RESTClient().Get().AbsPath(path).Param("pretty", "no").Do(t.Context()).Error(); err != nil {
			t.Error(row.group, err)
		}
		if row.key != "" {
			row.key += "localhost"
		}
		server.checkNote(t, path+"?pretty=no", row.key, row.note)
	}
	// Each request counts, on kept connections, too; probes of availability and discovery do not.
	requests := func(group string) (count int) {
		for _, event := range eventsOf(t, server.file, "/apis/"+group+".example.com/") {
			if event.ResponseStatus.Code == http.StatusOK {
				count++
			}
		}
		return count
	}
	server.checkCounts(t, "kube_aggregator", requests("nameless"), requests("weak"))
	server.checkCounts(t, "webhooks", 0, 0)

	refused := authority.serve(t, things, func(certificate *x509.Certificate) {
		withoutNames(certificate)
		certificate.Subject.CommonName = "refused.default.svc"
	})
	server.register(t, "refused", refused, fmt.Sprintf(`"caBundle":"%s"`, encoded(authority.pem())))
	eventually(t, "refused is unavailable, and says why", func() bool {
		object, err := client.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/v1.refused.example.com").DoRaw(t.Context())
		return err == nil && strings.Contains(string(object), legacyName)
	})
}

func encoded(bytes []byte) string { return base64.StdEncoding.EncodeToString(bytes) }
