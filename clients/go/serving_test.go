package clients

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The error of a handshake with these settings.
func handshake(t *testing.T, config *rest.Config, settings *tls.Config) error {
	settings.InsecureSkipVerify = true
	connection, err := tls.Dial("tcp", strings.TrimPrefix(config.Host, "https://"), settings)
	if err == nil {
		_ = connection.Close()
	}
	return err
}

// After test/integration/tls/ciphers_test.go. Upstream's second row has a cipher suite without forward
// secrecy, which Pintle does not have.
func TestAPICiphers(t *testing.T) {
	config := serve(t, "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
	for suite, accepted := range map[uint16]bool{
		tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA:     false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		if err := handshake(t, config, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}); (err == nil) != accepted {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
		}
	}
}

// After test/integration/tls/curves_test.go, without P-521 (25), which Pintle does not have, and with a
// group that the flag leaves out.
func TestAPICurvePreferences(t *testing.T) {
	config := serve(t, "--tls-curve-preferences=23,24,25,4588")
	for _, row := range []struct {
		curve    tls.CurveID
		version  uint16
		accepted bool
	}{
		{tls.CurveP256, tls.VersionTLS12, true},
		{tls.CurveP384, tls.VersionTLS12, true},
		{tls.X25519MLKEM768, tls.VersionTLS13, true},
		{tls.X25519, tls.VersionTLS13, false},
	} {
		if err := handshake(t, config, &tls.Config{MinVersion: row.version, CurvePreferences: []tls.CurveID{row.curve}}); (err == nil) != row.accepted {
			t.Errorf("%v: %v", row.curve, err)
		}
	}
}

// After test/integration/auth/requestheader_test.go: a front proxy names a user, and its uid if a flag
// names the header.
func TestAuthnToKAS(t *testing.T) {
	directory := t.TempDir()
	certificate, key := writeClientCertificate(t, directory, "test-aggregated-apiserver")
	names := []string{"--requestheader-client-ca-file=" + certificate, "--requestheader-allowed-names=test-aggregated-apiserver",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"}
	for name, row := range map[string]struct {
		flags []string
		uid   string
	}{
		"KAS without UID config": {names, ""},
		"KAS with UID config":    {append(slices.Clip(names), "--requestheader-uid-headers=X-Remote-Uid"), "test-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.AnonymousClientConfig(serve(t, row.flags...))
			config.CertFile, config.KeyFile = certificate, key
			var review authenticationv1.SelfSubjectReview
			err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().RESTClient().Post().Resource("selfsubjectreviews").Body(&authenticationv1.SelfSubjectReview{}).
				SetHeader("X-Remote-Uid", "test-uid").SetHeader("X-Remote-User", "testuser").SetHeader("X-Remote-Group", "group1", "group2").
				Do(t.Context()).Into(&review)
			if user := review.Status.UserInfo; err != nil || user.Username != "testuser" || user.UID != row.uid || !strings.HasPrefix(strings.Join(user.Groups, " "), "group1 group2") {
				t.Errorf("%+v %v", user, err)
			}
		})
	}
}

// After test/integration/apiserver/anonymous/anonymous_test.go: TestStructuredAuthenticationConfig.
func TestAnonymousStructuredAuthenticationConfig(t *testing.T) {
	for name, row := range map[string]struct {
		conditions           string
		pods, livez, healthz int
	}{
		"valid config no conditions":   {"", 200, 200, 200},
		"valid config with conditions": {", conditions: [{path: /livez}]", 401, 200, 401},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "authentication.yaml")
			writeFile(t, file, "{apiVersion: apiserver.config.k8s.io/v1beta1, kind: AuthenticationConfiguration, anonymous: {enabled: true"+row.conditions+"}}")
			config := serve(t, "--authorization-mode=RBAC", "--authentication-config="+file)
			grant(t, config, "system:anonymous", "list", "", "pods")
			for path, want := range map[string]int{"/api/v1/namespaces/default/pods": row.pods, "/livez": row.livez, "/healthz": row.healthz} {
				if code, _ := send(t, rest.AnonymousClientConfig(config), "", "", http.MethodGet, path, ""); code != want {
					t.Errorf("%s: %d", path, code)
				}
			}
		})
	}
}

// After test/integration/apiserver/subresource_auth_test.go: a WebSocket is a GET, and needs the verb
// create nevertheless.
func TestPodSubresourceAuth(t *testing.T) {
	config := serve(t, "--authorization-mode=RBAC")
	client := kubernetes.NewForConfigOrDie(config)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "test-pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "test-container", Image: "test-image"}}}}
	eventually(t, "the pod is created", func() bool {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil
	})
	for _, subresource := range []string{"exec", "attach", "portforward"} {
		for _, user := range []string{"pod-getter", "pod-creator"} {
			grant(t, config, user, "get", "", "pods/"+subresource)
		}
		grant(t, config, "pod-creator", "create", "", "pods/"+subresource)
		connect := func(user string) error {
			return as(t, config, user).CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name("test-pod").SubResource(subresource).Do(t.Context()).Error()
		}
		if err := connect("pod-getter"); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", subresource, err)
		}
		// The pod has no node, so an authorized request is a bad one.
		if err := connect("pod-creator"); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", subresource, err)
		}
	}
}
