package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file are those of test/integration/auth/rbac_test.go with the same names.

var (
	readPods  = []rbacv1.PolicyRule{{Verbs: []string{"list", "get", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	writeJobs = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"batch"}, Resources: []string{"*"}}}
)

func ruleOf(verb, group, resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}}
}

func createClusterRole(t *testing.T, config *rest.Config, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := kubernetes.NewForConfigOrDie(config).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Binds a role, as "ClusterRole name", to users: in a namespace, or everywhere.
func bind(t *testing.T, config *rest.Config, namespace, role string, users ...string) {
	t.Helper()
	kind, name, _ := strings.Cut(role, " ")
	subjects := make([]rbacv1.Subject, len(users))
	for index, user := range users {
		subjects[index] = rbacv1.Subject{Kind: "User", Name: user}
	}
	meta := metav1.ObjectMeta{Name: name}
	reference := rbacv1.RoleRef{Kind: kind, Name: name}
	client := kubernetes.NewForConfigOrDie(config).RbacV1()
	var err error
	if namespace == "" {
		_, err = client.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: reference}, metav1.CreateOptions{})
	} else {
		_, err = client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: reference}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"pi"},"spec":{"template":{"metadata":{"name":"a","labels":{"name":"pijob"}},
		"spec":{"containers":[{"name":"pi","image":"perl","command":["perl","-Mbignum=bpi","-wle","print bpi(2000)"]}],"restartPolicy":"Never"}}}}`
	writeJobsBinding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"pi"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"write-jobs"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"admin"}]}`
	limitRange = `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"}}`
)

// A row is a user, or "-" for an administrator, a method, a path and the code of the answer.
func checkRows(t *testing.T, config *rest.Config, rows []string, body func(path string) string) {
	t.Helper()
	for _, row := range rows {
		fields := strings.Fields(row)
		user, verb, path := strings.TrimPrefix(fields[0], "-"), fields[1], fields[2]
		text := ""
		if verb == "POST" || verb == "PUT" || verb == "PATCH" {
			text = body(path)
		}
		own := rest.CopyConfig(config)
		own.Impersonate.UserName = user
		own.QPS = -1
		request := kubernetes.NewForConfigOrDie(own).RESTClient().Verb(verb).AbsPath(path).Body([]byte(text)).SetHeader("Content-Type", "application/json")
		if verb == "PATCH" {
			request = request.SetHeader("Content-Type", "application/apply-patch+yaml").Param("fieldManager", "rbac_test")
		}
		var code int
		answer := request.Do(t.Context()).StatusCode(&code)
		if fmt.Sprint(code) != fields[3] {
			t.Errorf("%s: %d %v", row, code, answer.Error())
		}
	}
}

func TestRBAC(t *testing.T) {
	t.Run("case-0", func(t *testing.T) {
		config := serve(t, "--disable-admission-plugins=ServiceAccount")
		createClusterRole(t, config, "read-pods", readPods)
		bind(t, config, "", "ClusterRole read-pods", "pod-reader")
		createNamespace(t, config, "pod-namespace")
		pods := "/api/v1/namespaces/pod-namespace/pods"
		checkRows(t, config, []string{
			"- GET /api/v1/pods 200",
			"- GET " + pods + "/a 404",
			"- POST " + pods + " 201",
			"- GET " + pods + "/a 200",
			"bob GET /api/v1/pods 403",
			"bob GET " + pods + "/a 403",
			"pod-reader GET /api/v1/pods 200",
			"pod-reader POST " + pods + " 403",
		}, func(string) string { return fmt.Sprintf(aPod, "") })
	})
	t.Run("case-1", testJobsAndBindings)
	for method, verb := range map[string]string{"PUT": "update", "PATCH": "patch"} {
		t.Run("case-2-and-3-"+verb, func(t *testing.T) {
			config := serve(t)
			createClusterRole(t, config, "limitranges", ruleOf(verb, "", "limitranges"))
			bind(t, config, "", "ClusterRole limitranges", "limitrange-writer")
			createNamespace(t, config, "limitrange-namespace")
			path := " /api/v1/namespaces/limitrange-namespace/limitranges/a "
			// A write of a missing object creates it, which needs another verb.
			checkRows(t, config, []string{
				"limitrange-writer " + method + path + "403",
				"- " + method + path + "201",
				"- " + method + path + "200",
				"limitrange-writer " + method + path + "200",
			}, func(string) string { return limitRange })
		})
	}
}

func testJobsAndBindings(t *testing.T) {
	config := serve(t)
	createNamespace(t, config, "job-namespace")
	createNamespace(t, config, "forbidden-namespace")
	createClusterRole(t, config, "write-jobs", writeJobs)
	createClusterRole(t, config, "create-rolebindings", ruleOf("create", "rbac.authorization.k8s.io", "rolebindings"))
	createClusterRole(t, config, "bind-any-clusterrole", ruleOf("bind", "rbac.authorization.k8s.io", "clusterroles"))
	bind(t, config, "", "ClusterRole write-jobs", "job-writer")
	bind(t, config, "", "ClusterRole create-rolebindings", "job-writer", "nonescalating-rolebinding-writer", "any-rolebinding-writer")
	bind(t, config, "", "ClusterRole bind-any-clusterrole", "any-rolebinding-writer")
	bind(t, config, "job-namespace", "ClusterRole write-jobs", "job-writer-namespace")
	bind(t, config, "job-namespace", "ClusterRole create-rolebindings", "job-writer-namespace", "any-rolebinding-writer-namespace")
	bind(t, config, "job-namespace", "ClusterRole bind-any-clusterrole", "any-rolebinding-writer-namespace")
	here, there := " /apis/batch/v1/namespaces/job-namespace/jobs", " /apis/batch/v1/namespaces/forbidden-namespace/jobs"
	bindingsHere := " /apis/rbac.authorization.k8s.io/v1/namespaces/job-namespace/rolebindings"
	bindingsThere := " /apis/rbac.authorization.k8s.io/v1/namespaces/forbidden-namespace/rolebindings"
	checkRows(t, config, []string{
		"user-with-no-permissions POST" + here + " 403",
		"user-with-no-permissions GET" + here + "/pi 403",
		// A user who may write jobs in one namespace may not do so in another.
		"job-writer-namespace GET" + there + " 403",
		"job-writer-namespace GET" + there + "/pi 403",
		"job-writer-namespace POST" + there + " 403",
		"job-writer GET" + there + " 200",
		"job-writer GET" + there + "/pi 404",
		"job-writer POST" + there + " 201",
		"job-writer GET" + there + "/pi 200",
		"job-writer-namespace GET" + here + " 200",
		"job-writer-namespace GET" + here + "/pi 404",
		"job-writer-namespace POST" + here + " 201",
		"job-writer-namespace GET" + here + "/pi 200",
		// A user may bind a role if the user has its permissions in that scope, or the verb bind.
		"user-with-no-permissions POST" + bindingsHere + " 403",
		"any-rolebinding-writer-namespace POST" + bindingsThere + " 403",
		"job-writer-namespace POST" + bindingsThere + " 403",
		"job-writer-namespace POST" + bindingsHere + " 201",
		"- DELETE" + bindingsHere + "/pi 200",
		"job-writer POST" + bindingsThere + " 201",
		"- DELETE" + bindingsThere + "/pi 200",
		"nonescalating-rolebinding-writer POST" + bindingsHere + " 403",
		"any-rolebinding-writer POST" + bindingsHere + " 201",
		"- DELETE" + bindingsHere + "/pi 200",
		"any-rolebinding-writer-namespace POST" + bindingsHere + " 201",
		"- DELETE" + bindingsHere + "/pi 200",
	}, func(path string) string {
		if strings.HasSuffix(path, "/jobs") {
			return job
		}
		return writeJobsBinding
	})
}

func TestBootstrapping(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(serve(t))
	watch, err := client.RbacV1().ClusterRoles().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if event := <-watch.ResultChan(); event.Type != "ADDED" {
		t.Errorf("%+v", event)
	}
	if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), "cluster-admin", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	health, err := client.RESTClient().Get().AbsPath("/healthz/poststarthook/rbac/bootstrap-roles").DoRaw(t.Context())
	if err != nil || string(health) != "ok" {
		t.Error(string(health), err)
	}
}

// Changes of administrators to the discovery bindings survive a restart, and the binding that a
// later release added takes over the subjects of the earlier one.
func TestDiscoveryUpgradeBootstrapping(t *testing.T) {
	flag := "--data-dir=" + filepath.Join(t.TempDir(), "data")
	config, stop := start(t, flag)
	bindings := kubernetes.NewForConfigOrDie(config).RbacV1().ClusterRoleBindings()
	changed := map[string]*rbacv1.ClusterRoleBinding{}
	for _, name := range []string{"system:discovery", "system:basic-user"} {
		binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		binding.Annotations["rbac.authorization.kubernetes.io/autoupdate"] = "false"
		binding.Annotations["rbac-discovery-upgrade-test"] = "pass"
		if name == "system:discovery" {
			binding.Subjects = []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated", APIGroup: "rbac.authorization.k8s.io"}}
		}
		if changed[name], err = bindings.Update(t.Context(), binding, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := bindings.Delete(t.Context(), "system:public-info-viewer", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	config, _ = start(t, flag)
	bindings = kubernetes.NewForConfigOrDie(config).RbacV1().ClusterRoleBindings()
	for name, want := range changed {
		if binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{}); err != nil || !reflect.DeepEqual(binding, want) {
			t.Errorf("%s: %+v, not %+v, %v", name, binding, want, err)
		}
	}
	viewer, err := bindings.Get(t.Context(), "system:public-info-viewer", metav1.GetOptions{})
	if err != nil || viewer.Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "false" || viewer.Annotations["rbac-discovery-upgrade-test"] != "pass" ||
		!reflect.DeepEqual(viewer.Subjects, changed["system:discovery"].Subjects) {
		t.Errorf("%+v %v", viewer, err)
	}
}

// Upstream calls its authorizer with several contexts; here reviews are created in several
// namespaces.
func TestRBACContextContamination(t *testing.T) {
	config := serve(t)
	createNamespace(t, config, "pod-namespace")
	createNamespace(t, config, "forbidden-namespace")
	createClusterRole(t, config, "c1-clusterrole", readPods)
	bind(t, config, "", "ClusterRole c1-clusterrole", "c1-user")
	createClusterRole(t, config, "c2-clusterrole", readPods)
	bind(t, config, "pod-namespace", "ClusterRole c2-clusterrole", "c2-user")
	client := kubernetes.NewForConfigOrDie(config)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "c3-role"}, Rules: readPods}
	if _, err := client.RbacV1().Roles("pod-namespace").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind(t, config, "pod-namespace", "Role c3-role", "c3-user")
	for _, row := range []struct {
		user, resource, namespace string
		allowed                   bool
	}{
		{"c1-user", "pods", "", true},
		{"c1-user", "pods", "pod-namespace", true},
		{"c1-user", "configmaps", "", false},
		{"c2-user", "pods", "", false},
		{"c2-user", "pods", "pod-namespace", true},
		{"c2-user", "configmaps", "pod-namespace", false},
		{"c2-user", "pods", "forbidden-namespace", false},
		{"c3-user", "pods", "", false},
		{"c3-user", "pods", "pod-namespace", true},
		{"c3-user", "configmaps", "pod-namespace", false},
		{"c3-user", "pods", "forbidden-namespace", false},
	} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: row.user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: row.resource, Namespace: row.namespace}}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != row.allowed || review.Status.Denied {
			t.Errorf("%+v: %+v %v", row, review, err)
		}
		if row.namespace == "" {
			continue
		}
		local, err := client.AuthorizationV1().LocalSubjectAccessReviews(row.namespace).Create(t.Context(), &authorizationv1.LocalSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || local.Status.Allowed != row.allowed {
			t.Errorf("%+v: %+v %v", row, local, err)
		}
	}
}

func TestMonitoringURLs(t *testing.T) {
	config := serve(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "monitoring-user", Groups: []string{"system:monitoring"}}
	client := kubernetes.NewForConfigOrDie(config).RESTClient()
	// The health checks come first: "/metrics/slis" has a series for each check that ran.
	for _, row := range []struct{ path, want string }{
		{"/livez", `^ok$`},
		{"/readyz", `^ok$`},
		{"/healthz", `^ok$`},
		{"/statusz", `apiserver statusz`},
		{"/metrics", `# HELP \w+`},
		{"/metrics/slis", `kubernetes_healthcheck\{\w+`},
	} {
		text, err := client.Get().AbsPath(row.path).SetHeader("Accept", "text/plain").DoRaw(t.Context())
		if err != nil || !regexp.MustCompile(row.want).Match(text) {
			t.Errorf("%s: %.200s %v", row.path, text, err)
		}
	}
	if err := client.Get().AbsPath("/api/v1/pods").Do(t.Context()).Error(); err == nil {
		t.Error("who monitors reads no pods")
	}
}

// A webhook that decides about dave as sarAuthorizer of upstream's accessreview_test.go does.
func serveWithoutDave(t *testing.T) *rest.Config {
	config, webhook := serveWithRule(t, func(authorizationv1.SubjectAccessReviewSpec) bool { return true })
	webhook.set(func(spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		if spec.User == "dave" {
			return authorizationv1.SubjectAccessReviewStatus{Reason: "no", EvaluationError: "I'm sorry, Dave"}, http.StatusOK
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "you're not dave"}, http.StatusOK
	})
	return config
}

// After test/integration/auth/accessreview_test.go: TestSubjectAccessReview,
// TestSelfSubjectAccessReview and TestLocalSubjectAccessReview, row by row. Upstream's test has
// its own authorizer; a server does not pass on a webhook's evaluation errors.
func TestSubjectAccessReviews(t *testing.T) {
	config := serveWithoutDave(t)
	const base = "/apis/authorization.k8s.io/v1/"
	const pods = `"resourceAttributes":{"verb":"list","group":"","version":"v1","resource":"pods"%s}`
	in := func(namespace string) string { return fmt.Sprintf(pods, `,"namespace":"`+namespace+`"`) }
	everywhere := fmt.Sprintf(pods, "")
	for _, row := range []struct{ as, path, spec, metadata, want string }{
		{"", "subjectaccessreviews", everywhere + `,"user":"alice"`, "", "you're not dave"},
		{"", "subjectaccessreviews", everywhere + `,"user":"dave"`, "", "no"},
		{"", "subjectaccessreviews", everywhere, "", "at least one of user or group must be specified"},
		{"alice", "selfsubjectaccessreviews", everywhere, "", "you're not dave"},
		{"", "namespaces/foo/localsubjectaccessreviews", in("foo") + `,"user":"alice"`, `"namespace":"foo"`, "you're not dave"},
		{"", "namespaces/foo/localsubjectaccessreviews", in("foo") + `,"user":"dave"`, `"namespace":"foo"`, "no"},
		{"", "namespaces/foo/localsubjectaccessreviews", in("bar") + `,"user":"dave"`, `"namespace":"foo"`, "must match metadata.namespace"},
		{"", "namespaces/foo/localsubjectaccessreviews", everywhere + `,"user":"dave"`, `"namespace":"foo"`, "must match metadata.namespace"},
	} {
		body := fmt.Sprintf(`{"metadata":{%s},"spec":{%s}}`, row.metadata, row.spec)
		_, text := send(t, config, "", row.as, "POST", base+row.path, body)
		var answer struct {
			Message string
			Status  json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(text, err)
		}
		var status authorizationv1.SubjectAccessReviewStatus
		_ = json.Unmarshal(answer.Status, &status) // a failure has a text there
		if strings.HasPrefix(row.want, "at least") || strings.HasPrefix(row.want, "must") {
			if !strings.Contains(answer.Message, row.want) {
				t.Errorf("%+v: %s", row, text)
			}
		} else if status.Reason != row.want || status.Allowed != (row.want == "you're not dave") || status.Denied {
			t.Errorf("%+v: %s", row, text)
		}
	}
}
