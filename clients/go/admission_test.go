package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Starts a server with an admission plugin and its configuration.
func serveWithPlugin(t *testing.T, plugin, configuration string) *kubernetes.Clientset {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	text := fmt.Sprintf("kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugins:\n- {name: %s, configuration: %s}\n", plugin, configuration)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := serve(t, "--admission-control-config-file="+file, "--enable-admission-plugins="+plugin, "--disable-admission-plugins=ServiceAccount")
	config.QPS = -1
	return kubernetes.NewForConfigOrDie(config)
}

func newEvent(namespace, about string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "e-", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: about},
		Source:         corev1.EventSource{Component: "test"},
	}
}

// After plugin/pkg/admission/eventratelimit/admission_test.go.
func TestEventRateLimit(t *testing.T) {
	limits := map[string]string{"Server": "", "Namespace": "default", "User": "admin", "SourceAndObject": "testPoddefaulta"}
	for limit, key := range limits {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			c := serveWithPlugin(t, "EventRateLimit", fmt.Sprintf(
				"{kind: Configuration, apiVersion: eventratelimit.admission.k8s.io/v1alpha1, limits: [{type: %s, qps: 1, burst: 3}]}", limit))
			ctx := t.Context()
			if limit == "User" {
				me, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				key = me.Status.UserInfo.Username
			}
			// Dry runs do not count.
			for range 20 {
				if _, err := c.CoreV1().Events("default").Create(ctx, newEvent("default", "a"), metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
					t.Fatal(err)
				}
			}
			// Many more at once than a burst of three and one per second.
			errors := make([]error, 200)
			var all sync.WaitGroup
			for i := range errors {
				all.Go(func() {
					_, errors[i] = c.CoreV1().Events("default").Create(ctx, newEvent("default", "a"), metav1.CreateOptions{})
				})
			}
			all.Wait()
			accepted := 0
			for _, err := range errors {
				want := fmt.Sprintf("Too many requests: limit reached on type %s for key %s", limit, key)
				switch {
				case err == nil:
					accepted++
				case !apierrors.IsTooManyRequests(err) || strings.TrimSpace(err.Error()) != strings.TrimSpace(want):
					t.Fatalf("%#v", err)
				}
			}
			if accepted < 3 || accepted > 150 {
				t.Errorf("%d of %d events were accepted", accepted, len(errors))
			}
			// Upstream does not limit this group.
			for range 50 {
				_, err := c.EventsV1().Events("default").Create(ctx, &eventsv1.Event{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: "default"}, EventTime: metav1.NowMicro(),
					Regarding:           corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "a"},
					ReportingController: "example.com/test", ReportingInstance: "i", Action: "a", Reason: "r", Type: "Normal",
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A webhook that decides about images by a function, and its requests.
type imageReviewer struct {
	mutex sync.Mutex
	asked []v1alpha1.ImageReviewSpec
	judge func(spec v1alpha1.ImageReviewSpec, attempt int) (v1alpha1.ImageReviewStatus, int)
}

func (r *imageReviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review v1alpha1.ImageReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.APIVersion != "imagepolicy.k8s.io/v1alpha1" || request.Header.Get("Authorization") != "Bearer t" {
		http.Error(w, fmt.Sprint(err, review.APIVersion), http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked = append(r.asked, review.Spec)
	status, code := r.judge(review.Spec, len(r.asked))
	if code != http.StatusOK {
		http.Error(w, "broken on purpose", code)
		return
	}
	review.Status = status
	_ = json.NewEncoder(w).Encode(review)
}

func (r *imageReviewer) take() []v1alpha1.ImageReviewSpec {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// After plugin/pkg/admission/imagepolicy/admission_test.go. The first image determines what the webhook does.
func TestImagePolicyWebhook(t *testing.T) {
	for _, defaultAllow := range []bool{false, true} {
		t.Run(fmt.Sprintf("defaultAllow=%t", defaultAllow), func(t *testing.T) {
			t.Parallel()
			checkImagePolicy(t, defaultAllow)
		})
	}
}

func checkImagePolicy(t *testing.T, defaultAllow bool) {
	reviewer := &imageReviewer{judge: func(spec v1alpha1.ImageReviewSpec, attempt int) (v1alpha1.ImageReviewStatus, int) {
		switch image := spec.Containers[0].Image; {
		case image == "denied":
			return v1alpha1.ImageReviewStatus{Reason: "not signed"}, http.StatusOK
		case image == "refused":
			return v1alpha1.ImageReviewStatus{}, http.StatusOK
		case image == "malformed":
			return v1alpha1.ImageReviewStatus{}, http.StatusBadRequest
		case image == "failing" || image == "failing-once" && attempt == 1:
			return v1alpha1.ImageReviewStatus{}, http.StatusInternalServerError
		}
		return v1alpha1.ImageReviewStatus{Allowed: true, AuditAnnotations: map[string]string{"a": "b"}}, http.StatusOK
	}}
	server := httptest.NewTLSServer(reviewer)
	t.Cleanup(server.Close)
	c := serveWithPlugin(t, "ImagePolicyWebhook", fmt.Sprintf(
		"{imagePolicy: {kubeConfigFile: %s, allowTTL: 1000, denyTTL: -1, retryBackoff: 10, defaultAllow: %t}}",
		kubeconfigOf(t, server, filepath.Join(t.TempDir(), "webhook")), defaultAllow))
	ctx, pods := t.Context(), c.CoreV1().Pods("default")
	create := func(image string) error {
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Annotations: map[string]string{"x.image-policy.k8s.io/break-glass": "1", "other": "2"}},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "i", Image: "init"}},
				Containers:     []corev1.Container{{Name: "c", Image: image}},
			},
		}, metav1.CreateOptions{})
		return err
	}
	const forbidden = `pods "p-`
	for _, row := range []struct {
		image string
		want  string // what the refusal ends with, where the pod is refused
		fails bool   // whether the webhook gives no answer
		times int
	}{
		{"allowed", "", false, 1},
		{"allowed", "", false, 0},
		{"denied", "image policy webhook backend denied one or more images: not signed", false, 1},
		{"denied", "image policy webhook backend denied one or more images: not signed", false, 1},
		{"refused", "one or more images rejected by webhook backend", false, 1},
		{"malformed", "the server rejected our request for an unknown reason", true, 1},
		{"failing-once", "", false, 2},
		{"failing", `an error on the server ("broken on purpose") has prevented the request from succeeding`, true, 5},
	} {
		err := create(row.image)
		switch {
		case row.want == "" || row.fails && defaultAllow:
			if err != nil {
				t.Errorf("%s: %v", row.image, err)
			}
		case !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), forbidden) || !strings.HasSuffix(err.Error(), row.want):
			t.Errorf("%s: %v", row.image, err)
		}
		asked := reviewer.take()
		if len(asked) != row.times {
			t.Errorf("%s: %d questions", row.image, len(asked))
		}
		for _, spec := range asked {
			want := v1alpha1.ImageReviewSpec{
				Containers:  []v1alpha1.ImageReviewContainerSpec{{Image: row.image}, {Image: "init"}},
				Annotations: map[string]string{"x.image-policy.k8s.io/break-glass": "1"},
				Namespace:   "default",
			}
			if !reflect.DeepEqual(spec, want) {
				t.Errorf("asked %+v", spec)
			}
		}
	}
	checkEphemeralContainers(t, c, reviewer)
}

// CVE-2023-2727: the images of ephemeral containers are checked, too.
func checkEphemeralContainers(t *testing.T, c *kubernetes.Clientset, reviewer *imageReviewer) {
	ctx, pods := t.Context(), c.CoreV1().Pods("default")
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "e"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "allowed"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reviewer.take()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "d", Image: "denied", ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}
	_, err = pods.UpdateEphemeralContainers(ctx, "e", pod, metav1.UpdateOptions{})
	told(t, "ephemeral container", err, apierrors.IsForbidden)
	want := []v1alpha1.ImageReviewSpec{{Containers: []v1alpha1.ImageReviewContainerSpec{{Image: "denied"}}, Namespace: "default"}}
	if asked := reviewer.take(); !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %+v", asked)
	}
	// An update of labels has the same images, so the cached decision is used.
	pod.Spec.EphemeralContainers, pod.Labels = nil, map[string]string{"a": "b"}
	if _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if asked := reviewer.take(); len(asked) != 0 {
		t.Errorf("asked %+v", asked)
	}
}

// A validating webhook whose behaviour depends on the object's name, and its requests by name.
type validator struct {
	mutex  sync.Mutex
	asked  map[string][]*http.Request
	refuse func(name string, times int) (code int, retryAfter string)
}

func (v *validator) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v.mutex.Lock()
	v.asked[review.Request.Name] = append(v.asked[review.Request.Name], request)
	code, retryAfter := v.refuse(review.Request.Name, len(v.asked[review.Request.Name]))
	v.mutex.Unlock()
	if code != http.StatusOK {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, "broken on purpose", code)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// The number of calls for an object.
func (v *validator) times(name string) int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return len(v.asked[name])
}

// Registers the webhook for config maps in a namespace, and waits until it is called.
func (v *validator) register(t *testing.T, c *kubernetes.Clientset, server *httptest.Server, namespace string) {
	webhook := webhookFor(server, namespace)
	_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "v-"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhook},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v.probe(t, c, namespace)
}

// The same as a mutating webhook without changes.
func (v *validator) registerMutating(t *testing.T, c *kubernetes.Clientset, server *httptest.Server, namespace string) {
	webhook := webhookFor(server, namespace)
	_, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: webhook.Name, FailurePolicy: webhook.FailurePolicy, SideEffects: webhook.SideEffects, TimeoutSeconds: webhook.TimeoutSeconds,
			AdmissionReviewVersions: webhook.AdmissionReviewVersions, ClientConfig: webhook.ClientConfig, NamespaceSelector: webhook.NamespaceSelector, Rules: webhook.Rules,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v.probe(t, c, namespace)
}

// Creates config maps until the webhook is called.
func (v *validator) probe(t *testing.T, c *kubernetes.Clientset, namespace string) {
	eventually(t, "the webhook is asked", func() bool {
		name := fmt.Sprintf("probe-%d", time.Now().UnixNano())
		_, err := c.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err == nil && v.times(name) > 0
	})
}

func webhookFor(server *httptest.Server, namespace string) admissionregistrationv1.ValidatingWebhook {
	url, timeout := server.URL+"/review", int32(2)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	return admissionregistrationv1.ValidatingWebhook{
		Name: "v.example.com", FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authorityOf(server)},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}
}

// As in client-go's rest.Request: retries after the pause in Retry-After, ten times, within the timeout.
func TestWebhooksAreAskedAgain(t *testing.T) {
	rows := []struct {
		name       string
		code       int
		retryAfter string
		fails      int // how many answers fail
		times      int // how often it is asked
		want       string
	}{
		{"retry-429", 429, "0", 2, 3, ""},
		{"retry-503", 503, "1", 1, 2, ""},
		{"retry-500", 500, "0", 10, 11, ""},
		{"bound", 503, "0", 99, 11, "the server is currently unable to handle the request"},
		{"timeout", 503, "60", 99, 1, "context deadline exceeded"},
		{"no-header", 503, "", 99, 1, "the server is currently unable to handle the request"},
		{"date", 503, "Wed, 21 Oct 2037 07:28:00 GMT", 99, 1, "the server is currently unable to handle the request"},
		{"lasting", 400, "0", 99, 1, "the server rejected our request for an unknown reason"},
	}
	v := &validator{asked: map[string][]*http.Request{}}
	v.refuse = func(name string, times int) (int, string) {
		for _, row := range rows {
			if row.name == name && times <= row.fails {
				return row.code, row.retryAfter
			}
		}
		return http.StatusOK, ""
	}
	server := httptest.NewTLSServer(v)
	t.Cleanup(server.Close)
	config := serve(t)
	config.QPS = -1
	c := kubernetes.NewForConfigOrDie(config)
	v.register(t, c, server, "default")
	for _, row := range rows {
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: row.name}}, metav1.CreateOptions{})
		switch {
		case row.want == "":
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		case err == nil || !strings.Contains(err.Error(), `failed calling webhook "v.example.com": failed to call webhook: `) || !strings.HasSuffix(err.Error(), row.want):
			t.Errorf("%s: %v", row.name, err)
		}
		if times := v.times(row.name); times != row.times {
			t.Errorf("%s: asked %d times", row.name, times)
		}
	}
}

// A self-signed client certificate and its key, as files.
func writeClientCertificate(t *testing.T, directory, name string) (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(directory, "client.crt"), filepath.Join(directory, "client.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// The credentials of the last call for an object: the token and the name in the client certificate.
func (v *validator) caller(name string) string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	asked := v.asked[name]
	if len(asked) == 0 {
		return "nobody"
	}
	caller := strings.TrimPrefix(asked[len(asked)-1].Header.Get("Authorization"), "Bearer ")
	for _, certificate := range asked[len(asked)-1].TLS.PeerCertificates {
		caller += "/" + certificate.Subject.CommonName
	}
	return caller
}

func newValidator(t *testing.T) (*validator, *httptest.Server) {
	v := &validator{asked: map[string][]*http.Request{}, refuse: func(string, int) (int, string) { return http.StatusOK, "" }}
	server := httptest.NewUnstartedServer(v)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return v, server
}

// After test/integration/apiserver/admissionwebhook/client_auth_test.go: credentials by host. Each
// plugin has its own credentials, and those of a host with a port apply to that port only.
func TestWebhooksAreShownCredentials(t *testing.T) {
	directory := t.TempDir()
	certificate, key := writeClientCertificate(t, directory, "first")
	exact, exactServer := newValidator(t)
	other, otherServer := newValidator(t)
	host := strings.TrimPrefix(exactServer.URL, "https://")
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	users := write("users.yaml", fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- {name: %q, user: {client-certificate: %s, client-key: client.key}}
- {name: "*.0.0.1", user: {token: without-port}}
- {name: "*", user: {token: everyone}}
`, host, filepath.Base(certificate)))
	configuration := write("admission.yaml", fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %s}
`, users))
	config := serve(t, "--admission-control-config-file="+configuration)
	config.QPS = -1
	c := kubernetes.NewForConfigOrDie(config)
	exact.register(t, c, exactServer, "default")
	other.register(t, c, otherServer, "default")
	mutating, mutatingServer := newValidator(t)
	mutating.registerMutating(t, c, mutatingServer, "default")
	create := func(name string) {
		if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	for _, row := range []struct {
		v    *validator
		want string
	}{{exact, "/first"}, {other, "everyone"}, {mutating, ""}} {
		if caller := row.v.caller("a"); caller != row.want {
			t.Errorf("%q instead of %q", caller, row.want)
		}
	}
	if os.Getenv("PINTLE_TEST_REFERENCE") != "" {
		return // client-go looks at the files every five minutes
	}
	// The certificate is replaced, first its key: the old pair stays in use until both files are new.
	second := filepath.Join(directory, "second")
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	newCertificate, newKey := writeClientCertificate(t, second, "second")
	if err := os.Rename(newKey, key); err != nil {
		t.Fatal(err)
	}
	create("half")
	if caller := exact.caller("half"); caller != "/first" {
		t.Errorf("%q shows half a pair", caller)
	}
	if err := os.Rename(newCertificate, certificate); err != nil {
		t.Fatal(err)
	}
	times := 0
	eventually(t, "the new certificate is shown", func() bool {
		times++
		name := fmt.Sprintf("b-%d", times)
		create(name)
		return exact.caller(name) == "/second"
	})
}
