package clients

import (
	"io"
	"testing"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

func TestDiscovery(t *testing.T) {
	for name, legacy := range map[string]bool{"aggregated": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			config := config(t)
			answers := record(config)
			d, err := discovery.NewDiscoveryClientForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			d.UseLegacyDiscovery = legacy
			_, lists, err := d.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]metav1.APIResource{}
			for _, list := range lists {
				for _, resource := range list.APIResources {
					found[list.GroupVersion+"/"+resource.Name] = resource
				}
			}
			if pods := found["v1/pods"]; pods.Kind != "Pod" || pods.SingularName != "pod" || !pods.Namespaced || len(pods.Verbs) != 8 {
				t.Errorf("pods: %v", pods)
			}
			if scale := found["apps/v1/deployments/scale"]; scale.Kind != "Scale" || scale.Group != "autoscaling" {
				t.Errorf("scale: %v", scale)
			}
			if preferred, err := d.ServerPreferredResources(); err != nil || len(preferred) < 20 {
				t.Errorf("%d %v", len(preferred), err)
			}
			if legacy && !answers.any("/apis/apps/v1", protobuf) {
				t.Error("resources of a version did not come in Protobuf")
			}
			mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
			if err != nil || mapping.Resource.Resource != "deployments" {
				t.Errorf("%v %v", mapping, err)
			}
			if version, err := d.ServerVersion(); err != nil || version.Minor != "36" {
				t.Errorf("%v %v", version, err)
			}
		})
	}
}

func TestOpenAPI(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	document, err := d.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	if paths := len(document.GetPaths().GetPath()); paths < 400 {
		t.Errorf("%d paths in version 2", paths)
	}
	if types := len(document.GetDefinitions().GetAdditionalProperties()); types < 500 {
		t.Errorf("%d types in version 2", types)
	}
	root := openapi3.NewRoot(d.OpenAPIV3())
	spec, err := root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil || spec.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		t.Errorf("no Deployment in apps/v1: %v", err)
	}
	versions, err := d.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for path, version := range versions {
		bytes, err := version.Schema(openapi.ContentTypeOpenAPIV3PB)
		if err != nil {
			t.Fatal(path, err)
		}
		if err := proto.Unmarshal(bytes, &openapi_v3.Document{}); err != nil {
			t.Error(path, err)
		}
	}
}

// TestTables requests Tables as kubectl does.
func TestTables(t *testing.T) {
	config := config(t)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, ctx := namespace(t, c), t.Context()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
	if _, err := c.CoreV1().ConfigMaps(ns).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.ContentType, config.AcceptContentTypes = "", ""
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	accept := "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	table := &metav1.Table{}
	request := func() *rest.Request {
		return client.Get().Namespace(ns).Resource("configmaps").Param("fieldSelector", notTheirs).SetHeader("Accept", accept)
	}
	if err := request().Do(ctx).Into(table); err != nil {
		t.Fatal(err)
	}
	if len(table.ColumnDefinitions) != 3 || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "a" {
		t.Errorf("%v", table)
	}
	stream, err := request().Param("watch", "true").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	line := make([]byte, 64)
	if _, err := io.ReadFull(stream, line); err != nil || string(line[:40]) != `{"type":"ADDED","object":{"kind":"Table"` {
		t.Errorf("%s %v", line, err)
	}
}
