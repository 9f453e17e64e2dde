package clients

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: Request
  verbs: [list, watch]
  resources: [{group: "", resources: [configmaps]}]
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: "", resources: [configmaps]}]
- level: Metadata
  nonResourceURLs: [/version]
- level: Metadata
  users: [system:anonymous]
`

// The members of an event that the tests read.
type auditEvent struct {
	Level, AuditID, Stage, RequestURI, Verb, UserAgent string
	User, ImpersonatedUser                             struct {
		Username, UID string
		Groups        []string
	}
	AuthenticationMetadata struct{ ImpersonationConstraint string }
	ObjectRef              struct{ Resource, Namespace, Name, APIVersion string }

	ResponseStatus struct {
		Code    int
		Message string
	}
	RequestObject, ResponseObject json.RawMessage
	Annotations                   map[string]string
	RequestReceivedTimestamp      metav1.MicroTime
	StageTimestamp                metav1.MicroTime
}

// The parts of an event that are compared.
func (e auditEvent) String() string {
	objects := ""
	if len(e.RequestObject) > 0 {
		objects += " request"
	}
	if len(e.ResponseObject) > 0 {
		objects += " response"
	}
	return fmt.Sprintf("%s %s %s %s %d%s %s", e.Level, e.Stage, e.Verb, e.RequestURI, e.ResponseStatus.Code, objects, e.Annotations["authorization.k8s.io/decision"])
}

func auditEvents(t *testing.T, text string) (events []auditEvent) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		events = append(events, event)
	}
	return events
}

// Returns the events of a test in a file, which contain its namespace or another mark.
func eventsOf(t *testing.T, file, mark string) []auditEvent {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []auditEvent
	for _, event := range auditEvents(t, string(text)) {
		if strings.Contains(event.RequestURI, mark) {
			events = append(events, event)
		}
	}
	return events
}

// After test/integration/controlplane/audit/audit_test.go: each verb at its level, from a log.
func TestAuditLog(t *testing.T) {
	directory := t.TempDir()
	policy, file := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, auditPolicy)
	config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(config)
	maps := client.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, Data: map[string]string{"a": "<&>\n"}}
	if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, "audited", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=audited"})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=audited", ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	object.Data["b"] = "c"
	if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	<-watch.ResultChan()
	watch.Stop()
	if _, err := maps.Patch(ctx, "audited", types.MergePatchType, []byte(`{"data":{"b":"d"}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := as(t, config, "jane").CoreV1().ConfigMaps("default").Get(ctx, "audited", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if err := maps.Delete(ctx, "audited", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, StringData: map[string]string{"password": "never-in-the-log"}}
	if _, err := client.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}

	at := "/api/v1/namespaces/default/configmaps"
	selected := "fieldSelector=metadata.name%3Daudited"
	want := []string{
		"RequestResponse ResponseComplete create " + at + " 201 request response allow",
		"RequestResponse ResponseComplete get " + at + "/audited 200 response allow",
		"Request ResponseComplete list " + at + "?" + selected + " 200 allow",
		"Request ResponseStarted watch " + at + "?" + selected + "&resourceVersion=" + list.ResourceVersion + "&watch=true 200 allow",
		"RequestResponse ResponseComplete update " + at + "/audited 200 request response allow",
		"Request ResponseComplete watch " + at + "?" + selected + "&resourceVersion=" + list.ResourceVersion + "&watch=true 200 allow",
		"RequestResponse ResponseComplete patch " + at + "/audited 200 request response allow",
		"RequestResponse ResponseComplete get " + at + "/audited 403 response forbid",
		"RequestResponse ResponseComplete delete " + at + "/audited 200 request response allow",
		"Metadata ResponseComplete create /api/v1/namespaces/default/secrets 201 allow",
	}
	eventually(t, "all events are in the log", func() bool { return len(eventsOf(t, file, "/namespaces/default/")) >= len(want) })
	got := map[string]auditEvent{}
	for _, event := range eventsOf(t, file, "/namespaces/default/") {
		got[event.String()] = event
	}
	for _, event := range want {
		if _, is := got[event]; !is {
			t.Errorf("missing: %s", event)
		}
		delete(got, event)
	}
	for event := range got {
		t.Errorf("not expected: %s", event)
	}
	for _, event := range eventsOf(t, file, "/configmaps/audited") {
		if event.ResponseStatus.Code == 403 && (event.ImpersonatedUser.Username != "jane" || event.ObjectRef.Name != "audited") {
			t.Errorf("%+v", event)
		}
		if event.AuditID == "" || event.StageTimestamp.Before(&event.RequestReceivedTimestamp) {
			t.Errorf("%+v", event)
		}
		if strings.Contains(string(event.ResponseObject), "managedFields") {
			t.Error("managed fields are left out")
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "never-in-the-log") {
		t.Error("the secret is in the log", err)
	}
}

// No client can forge or hide a line; requests without or with invalid credentials are recorded.
func TestAuditOfStrangers(t *testing.T) {
	directory := t.TempDir()
	policy, file, legacy := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log"), filepath.Join(directory, "legacy.log")
	writeFile(t, policy, strings.Replace(auditPolicy, "  users: [system:anonymous]", "", 1))
	config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	ask := func(change func(*rest.Config), path string) {
		config := rest.AnonymousClientConfig(config)
		change(config)
		_, _ = kubernetes.NewForConfigOrDie(config).RESTClient().Get().RequestURI(path).DoRaw(t.Context())
	}
	ask(func(config *rest.Config) { config.UserAgent = `x" } {"kind":"Event","stage":"forged"}` }, "/nowhere/agent")
	ask(func(config *rest.Config) { config.UserAgent = strings.Repeat("a", 5000) }, "/nowhere/long")
	ask(func(*rest.Config) {}, "/nowhere/%0a%7b%22kind%22:%22Event%22%7d")
	ask(func(config *rest.Config) { config.BearerToken = "wrong" }, "/nowhere/token")
	const watched = "/api/v1/namespaces/nowhere/pods?watch=1"
	ask(func(config *rest.Config) { config.BearerToken = "wrong" }, watched)
	ask(func(*rest.Config) {}, "/nowhere/"+strings.Repeat("b", 8000))
	eventually(t, "all events are in the log", func() bool { return len(eventsOf(t, file, "/nowhere/")) >= 6 })
	events := eventsOf(t, file, "/nowhere/")
	if len(events) != 6 {
		t.Errorf("a request has more than one event: %v", events)
	}
	for _, event := range events {
		want := "Metadata ResponseComplete get " + event.RequestURI + " 403 forbid"
		if event.RequestURI == "/nowhere/token" {
			want = "Metadata ResponseStarted get /nowhere/token 401 "
		}
		if event.RequestURI == watched {
			want = "Metadata ResponseStarted watch " + watched + " 401 "
		}
		if event.String() != want || len(event.UserAgent) > 1100 {
			t.Errorf("%s\n%+v", event, event)
		}
	}

	config = serve(t, "--audit-policy-file="+policy, "--audit-log-path="+legacy, "--audit-log-format=legacy", "--audit-log-mode=blocking")
	ask(func(config *rest.Config) { config.UserAgent = "x\" uri=\"forged" }, "/nowhere/agent")
	eventually(t, "the event is in the log", func() bool {
		text, _ := os.ReadFile(legacy)
		return strings.Contains(string(text), `user-agent="x\" uri=\"forged" namespace="<none>" uri="/nowhere/agent" response="403"`)
	})
}

// Times in the legacy format are local, as Go formats them.
func TestAuditTimesInLegacyFormat(t *testing.T) {
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip("Go has no time zones here: ", err)
	}
	defer archive.Close()
	rules, err := fs.ReadFile(archive, "Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	policy, log, zone := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log"), filepath.Join(directory, "zone")
	writeFile(t, zone, string(rules))
	writeFile(t, policy, auditPolicy)
	for value, suffix := range map[string]string{zone: "+05:45", ":" + zone: "+05:45", "UTC": "Z", "": "Z", "Nowhere/Nothing": "Z"} {
		t.Setenv("TZ", value)
		_ = os.Remove(log)
		config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-format=legacy", "--audit-log-mode=blocking")
		if _, err := kubernetes.NewForConfigOrDie(config).ServerVersion(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the event is in the log", func() bool {
			text, _ := os.ReadFile(log)
			return strings.Contains(string(text), `uri="/version"`)
		})
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		stamp, _, _ := strings.Cut(string(text), " AUDIT: id=")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if ago := time.Since(at); err != nil || !strings.HasSuffix(stamp, suffix) || ago < 0 || ago > time.Minute {
			t.Errorf("TZ=%q: %s, %v ago (%v)", value, stamp, ago, err)
		}
	}
}

// Objects are recorded as JSON, whatever encoding the client uses.
func TestAuditOfEncodings(t *testing.T) {
	directory := t.TempDir()
	policy, file := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse, resources: [{resources: [configmaps]}], omitStages: [RequestReceived]}, {level: None}]\n")
	config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	yaml := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata: {a: '1'}\n"
	}
	path := "/api/v1/namespaces/default/configmaps"
	for name, ask := range map[string]*rest.Request{
		"yaml":     client.Post().RequestURI(path+"?as=yaml").SetHeader("Content-Type", "application/yaml").SetHeader("Accept", "application/yaml").Body([]byte(yaml("yaml"))),
		"json":     client.Post().RequestURI(path+"?as=json").SetHeader("Content-Type", "application/yaml").SetHeader("Accept", "application/json").Body([]byte(yaml("json"))),
		"protobuf": client.Post().RequestURI(path+"?as=protobuf").SetHeader("Content-Type", "application/yaml").SetHeader("Accept", "application/vnd.kubernetes.protobuf").Body([]byte(yaml("protobuf"))),
	} {
		if err := ask.Do(t.Context()).Error(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		uri := path + "?as=" + name
		eventually(t, "the event is in the log", func() bool { return len(eventsOf(t, file, uri)) == 1 })
		event := eventsOf(t, file, uri)[0]
		for what, object := range map[string]json.RawMessage{"request": event.RequestObject, "response": event.ResponseObject} {
			var found corev1.ConfigMap
			if err := json.Unmarshal(object, &found); err != nil || found.Kind != "ConfigMap" || found.Name != name || found.Data["a"] != "1" {
				t.Errorf("the %s of %s is recorded as %s (%v)", what, name, object, err)
			}
		}
	}
}

// Requests succeed when the log cannot be written, except in the mode blocking-strict.
func TestAuditOnAFullDisk(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [kubernetes-admin, admin], verbs: [create]}]\n")
	for mode, refuses := range map[string]bool{"batch": false, "blocking": false, "blocking-strict": true} {
		t.Run(mode, func(t *testing.T) {
			config := serve(t, "--audit-policy-file="+policy, "--audit-log-path=/dev/full", "--audit-log-maxsize=0", "--audit-log-mode="+mode)
			client := kubernetes.NewForConfigOrDie(config)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
			if refuses {
				told(t, mode, err, apierrors.IsInternalError)
				if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Error("it was created all the same", err)
				}
			} else if err != nil {
				t.Error(err)
			}
			eventually(t, "the loss is counted", func() bool {
				metrics, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
				return err == nil && strings.Contains(string(metrics), `apiserver_audit_error_total{plugin="log"}`)
			})
		})
	}
}

// A server that receives events.
type auditSink struct {
	*httptest.Server
	mutex  sync.Mutex
	lists  int
	fails  int
	events []auditEvent
}

func newAuditSink(t *testing.T) *auditSink {
	sink := &auditSink{}
	sink.Server = httptest.NewTLSServer(sink)
	t.Cleanup(sink.Close)
	return sink
}

func (s *auditSink) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var list struct {
		Kind, APIVersion string
		Items            []auditEvent
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lists++
	if s.fails > 0 {
		s.fails--
		http.Error(w, "broken on purpose", http.StatusServiceUnavailable)
		return
	}
	if err := json.NewDecoder(request.Body).Decode(&list); err != nil || list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" {
		http.Error(w, fmt.Sprint(err, list.Kind), http.StatusBadRequest)
		return
	}
	s.events = append(s.events, list.Items...)
}

func (s *auditSink) count(mark string) (count int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, event := range s.events {
		if strings.Contains(event.RequestURI, mark) {
			count++
		}
	}
	return count
}

func (s *auditSink) kubeconfig(t *testing.T) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	file := clientcmdapi.NewConfig()
	file.Clusters["s"] = &clientcmdapi.Cluster{Server: s.URL + "/sink", CertificateAuthorityData: authority}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "s", AuthInfo: "u"}
	file.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "sink")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Events are sent in lists and retried when the server fails; batches delay no request.
func TestAuditWebhook(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, nonResourceURLs: [/nowhere/*]}]\n")
	for _, mode := range []string{"batch", "blocking"} {
		t.Run(mode, func(t *testing.T) {
			sink := newAuditSink(t)
			sink.fails = 1
			config := serve(t, "--audit-policy-file="+policy, "--audit-webhook-config-file="+sink.kubeconfig(t),
				"--audit-webhook-mode="+mode, "--audit-webhook-initial-backoff=50ms",
				"--audit-webhook-batch-max-wait=200ms", "--audit-webhook-batch-max-size=10")
			client := kubernetes.NewForConfigOrDie(config).RESTClient()
			for number := range 25 {
				_, err := client.Get().AbsPath(fmt.Sprintf("/nowhere/%d", number)).DoRaw(t.Context())
				told(t, mode, err, apierrors.IsNotFound)
			}
			eventually(t, "all events have arrived", func() bool { return sink.count("/nowhere/") == 25 })
			if mode == "batch" && sink.lists > 10 {
				t.Errorf("%d lists for 25 events", sink.lists)
			}
		})
	}
}

// After test/integration/controlplane/audit: rows "cross-group", of subresources whose body is of another group,
// and a rule for all groups.
func TestAuditOfSubresources(t *testing.T) {
	directory := t.TempDir()
	policy, file := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	writeFile(t, policy, `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, namespaces: [create-audit-request], resources: [{group: "", resources: [serviceaccounts/token]}]}
- {level: RequestResponse, namespaces: [create-audit-response], resources: [{group: "", resources: [serviceaccounts/token]}]}
- {level: Request, namespaces: [update-audit-request], resources: [{group: apps, resources: [deployments/scale]}]}
- {level: RequestResponse, namespaces: [update-audit-response], resources: [{group: apps, resources: [deployments/scale]}]}
- {level: Request, namespaces: [wildcard-group-audit-request], verbs: [create], resources: [{group: "*", resources: [deployments]}]}
`)
	config := serve(t, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-mode=blocking")
	for namespace, level := range map[string]string{
		"create-audit-request":         "Request ResponseComplete create /api/v1/namespaces/NS/serviceaccounts/audited/token 201 request",
		"create-audit-response":        "RequestResponse ResponseComplete create /api/v1/namespaces/NS/serviceaccounts/audited/token 201 request response",
		"update-audit-request":         "Request ResponseComplete update /apis/apps/v1/namespaces/NS/deployments/audited/scale 200 request",
		"update-audit-response":        "RequestResponse ResponseComplete update /apis/apps/v1/namespaces/NS/deployments/audited/scale 200 request response",
		"wildcard-group-audit-request": "Request ResponseComplete create /apis/apps/v1/namespaces/NS/deployments 201 request",
	} {
		createNamespace(t, config, namespace)
		accounts, deployments := "/api/v1/namespaces/"+namespace+"/serviceaccounts", "/apis/apps/v1/namespaces/"+namespace+"/deployments"
		for _, request := range [][3]string{
			{"POST", accounts, `{"metadata":{"name":"audited"}}`},
			{"POST", accounts + "/audited/token", `{"spec":{"audiences":["api"]}}`},
			{"POST", deployments, `{"metadata":{"name":"audited"},"spec":{"selector":{"matchLabels":{"app":"test"}},"template":{"metadata":{"labels":{"app":"test"}},"spec":{"containers":[{"name":"foo","image":"foo/bar"}]}}}}`},
			{"PUT", deployments + "/audited/scale", `{"metadata":{"name":"audited","namespace":"` + namespace + `"},"spec":{"replicas":2}}`},
		} {
			if code, text := send(t, config, "", "", request[0], request[1], request[2]); code >= 300 {
				t.Fatalf("%s %s: %d %s", request[0], request[1], code, text)
			}
		}
		eventually(t, "the event is in the log", func() bool { return len(eventsOf(t, file, "/"+namespace+"/")) > 0 })
		events := eventsOf(t, file, "/"+namespace+"/")
		if want := strings.Replace(level, "NS", namespace, 1) + " allow"; len(events) != 1 || events[0].String() != want {
			t.Errorf("%v, not %s", events, want)
		}
	}
}
