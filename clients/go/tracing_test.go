package clients

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// A collector of OTLP, which may take its time to answer.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	delay time.Duration
	mutex sync.Mutex
	spans []*tracev1.Span
}

func (c *collector) Export(ctx context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	select {
	case <-time.After(c.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, resource := range request.ResourceSpans {
		if name := resource.Resource.Attributes[0]; name.Key != "service.name" || name.Value.GetStringValue() != "apiserver" {
			return nil, fmt.Errorf("the service is %v", name)
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// The spans of a trace with a name.
func (c *collector) named(trace, name string) (found []*tracev1.Span) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, span := range c.spans {
		if span.Name == name && (trace == "" || hex.EncodeToString(span.TraceId) == trace) {
			found = append(found, span)
		}
	}
	return found
}

// Waits for the only span of a trace with a name.
func (c *collector) span(t *testing.T, trace, name string) *tracev1.Span {
	t.Helper()
	eventually(t, "the span "+name, func() bool { return len(c.named(trace, name)) > 0 })
	found := c.named(trace, name)
	if len(found) > 1 {
		t.Errorf("%d spans are called %q", len(found), name)
	}
	return found[0]
}

// Begins to collect, and returns the collector with its address.
func collect(t *testing.T, delay time.Duration) (*collector, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &collector{delay: delay}, grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c, listener.Addr().String()
}

// Starts a server that exports its traces.
func serveTraced(t *testing.T, endpoint string, perMillion int) *rest.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %q\nsamplingRatePerMillion: %d\n", endpoint, perMillion)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := serve(t, "--tracing-config-file="+file)
	config.QPS = -1
	return config
}

type traced struct {
	next   http.RoundTripper
	parent string
}

func (r traced) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("traceparent", r.parent)
	request.Header.Set("tracestate", "vendor=1")
	return r.next.RoundTrip(request)
}

// A client whose requests belong to the client's trace.
func clientOf(config *rest.Config, flags string) *kubernetes.Clientset {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return traced{next, "00-" + clientTrace + "-" + clientSpan + "-" + flags}
	})
	return kubernetes.NewForConfigOrDie(copied)
}

// A client of a service account that may write config maps, but is no member of system:masters.
func accountOf(t *testing.T, config *rest.Config, flags string) *kubernetes.Clientset {
	t.Helper()
	admin := kubernetes.NewForConfigOrDie(config)
	ctx, create := t.Context(), metav1.CreateOptions{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "writer"}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "writer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "writer", Namespace: "default"}},
	}
	_, first := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, create)
	_, second := admin.RbacV1().RoleBindings("default").Create(ctx, binding, create)
	token, third := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "writer", &authenticationv1.TokenRequest{}, create)
	if first != nil || second != nil || third != nil {
		t.Fatal(first, second, third)
	}
	copied := rest.AnonymousClientConfig(config)
	copied.BearerToken = token.Status.Token
	copied.QPS = -1
	// The rules of "edit" are aggregated after the start.
	asked := kubernetes.NewForConfigOrDie(copied).AuthorizationV1().SelfSubjectAccessReviews()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "create", Resource: "configmaps"},
	}}
	eventually(t, "the account may create config maps", func() bool {
		answer, err := asked.Create(ctx, review, create)
		return err == nil && answer.Status.Allowed
	})
	return clientOf(copied, flags)
}

// A webhook that allows everything, and the contexts that it was given.
type tracedWebhook struct {
	mutex   sync.Mutex
	parents []string
}

func (w *tracedWebhook) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	// Controllers of the server create config maps, too.
	isOfTest := bytes.Contains(review.Request.Object.Raw, []byte(`"generateName":"traced-"`))
	w.mutex.Lock()
	if isOfTest {
		w.parents = append(w.parents, request.Header.Get("traceparent")+" "+request.Header.Get("tracestate"))
	}
	w.mutex.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(answer).Encode(review)
}

// Registers a webhook for config maps.
func registerTracedWebhook(t *testing.T, config *rest.Config) *tracedWebhook {
	t.Helper()
	webhook := &tracedWebhook{}
	server := httptest.NewTLSServer(webhook)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	_, err := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "traced"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "traced.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			SideEffects:             &none,
			FailurePolicy:           &fail,
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

func createMap(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "traced-"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

const createName = "POST /api/v1/namespaces/{:namespace}/configmaps"

// A trace leads from the client's span through a webhook to the commit.
func TestTraceFromClientToCommit(t *testing.T) {
	t.Parallel()
	c, endpoint := collect(t, 0)
	config := serveTraced(t, endpoint, 0)
	webhook := registerTracedWebhook(t, config)
	createMap(t, clientOf(config, "01"))
	server := c.span(t, clientTrace, createName)
	if hex.EncodeToString(server.ParentSpanId) != clientSpan || server.Kind != tracev1.Span_SPAN_KIND_SERVER || server.TraceState != "vendor=1" {
		t.Errorf("%v", server)
	}
	parents := map[string]string{
		"authentication": createName, "authorization": createName, "Create": createName, "Decode": "Create", "Admission": "Create",
		"Call mutating webhook": "Create", "Validation": "Create", "Commit": "Create",
	}
	for name, parent := range parents {
		spans := c.named(clientTrace, name)
		if len(spans) == 0 {
			t.Errorf("there is no span %s", name)
		}
		for _, span := range spans {
			if above := c.span(t, clientTrace, parent); !slices.Equal(span.ParentSpanId, above.SpanId) || span.StartTimeUnixNano < above.StartTimeUnixNano || span.EndTimeUnixNano > above.EndTimeUnixNano {
				t.Errorf("%v is no part of %v", span, above)
			}
		}
	}
	call := c.span(t, clientTrace, "Call mutating webhook")
	want := "00-" + clientTrace + "-" + hex.EncodeToString(call.SpanId) + "-01 vendor=1"
	if !slices.Equal(webhook.parents, []string{want}) {
		t.Errorf("the webhook was given %q and not %q", webhook.parents, want)
	}
	said := map[string]string{}
	for _, attribute := range append(server.Attributes, call.Attributes...) {
		said[attribute.Key] = attribute.Value.GetStringValue()
	}
	for key, value := range map[string]string{
		"http.request.method": "POST", "url.path": "/api/v1/namespaces/default/configmaps", "configuration": "traced",
		"webhook": "traced.example.com", "operation": "CREATE", "resource": "configmaps",
	} {
		if said[key] != value {
			t.Errorf("%s is %q", key, said[key])
		}
	}
}

// A client's decision counts if it is a member of system:masters, and else the configured rate.
func TestTraceSampling(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		rate       int
		isTrusted  bool
		flags      string
		isTraced   bool
		isOwn      bool
		isPassedOn bool
	}{
		{"trusted, not sampled", 1_000_000, true, "00", false, false, true},
		{"untrusted, sampled, never", 0, false, "01", false, false, false},
		{"untrusted, not sampled, always", 1_000_000, false, "00", true, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, endpoint := collect(t, 0)
			config := serveTraced(t, endpoint, row.rate)
			webhook := registerTracedWebhook(t, config)
			client := clientOf(config, row.flags)
			if !row.isTrusted {
				client = accountOf(t, config, row.flags)
			}
			createMap(t, client)
			// This trace ends after that of the create, and is exported after it.
			traced := clientOf(config, "01")
			if _, err := traced.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			c.span(t, clientTrace, "GET /api/v1/namespaces/{:namespace}/namespaces/{:name}")
			found := c.named("", createName)
			if (len(found) > 0) != row.isTraced {
				t.Fatalf("%v", found)
			}
			if row.isOwn {
				isLinked := len(found[0].Links) == 1 && hex.EncodeToString(found[0].Links[0].TraceId) == clientTrace
				if len(found[0].ParentSpanId) != 0 || hex.EncodeToString(found[0].TraceId) == clientTrace || !isLinked {
					t.Errorf("%v", found[0])
				}
			}
			isPassedOn := len(webhook.parents) == 1 && strings.HasPrefix(webhook.parents[0], "00-"+clientTrace+"-")
			if isPassedOn != row.isPassedOn {
				t.Errorf("the webhook was given %q", webhook.parents)
			}
		})
	}
}

// A collector that is away or slow costs requests nothing, and what is lost is counted.
func TestTraceCollectorAwayOrSlow(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	_, slow := collect(t, time.Hour)
	for name, endpoint := range map[string]string{"away": closed.Addr().String(), "slow": slow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := serveTraced(t, endpoint, 1_000_000)
			client := kubernetes.NewForConfigOrDie(config)
			began := time.Now()
			// Each has several spans: far more than the queue holds.
			for range 2000 {
				if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the requests took %s", took)
			}
			page, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), `pintle_trace_spans_total{outcome="dropped"} `) || strings.Contains(string(page), `pintle_trace_spans_total{outcome="dropped"} 0`+"\n") {
				t.Error("no dropped spans are counted")
			}
		})
	}
}
