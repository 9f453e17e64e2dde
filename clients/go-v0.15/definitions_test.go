package clients

import (
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// condition returns a condition of a definition.
func condition(d *apiextensions.CustomResourceDefinition, name string) apiextensions.CustomResourceDefinitionCondition {
	for _, c := range d.Status.Conditions {
		if string(c.Type) == name {
			return c
		}
	}
	return apiextensions.CustomResourceDefinitionCondition{}
}

// A definition as operators of the time had it: one version, a schema without types, and no pruning.
func TestDefinition(t *testing.T) {
	c := start(t, encodings[0])
	client, err := definitions.NewForConfig(config(t, encodings[0]))
	must(t, err)
	group := c.namespace + ".example.com"
	name := "tabs." + group
	must(t, createDefinition(client, &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group:        group,
			Version:      "v1",
			Names:        apiextensions.CustomResourceDefinitionNames{Plural: "tabs", Kind: "Tab"},
			Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
			Validation: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
				Properties: map[string]apiextensions.JSONSchemaProps{
					"spec": {Required: []string{"size"}, Properties: map[string]apiextensions.JSONSchemaProps{"size": {Type: "integer"}}},
				},
			}},
		},
	}))
	var made *apiextensions.CustomResourceDefinition
	eventually(t, "the definition is established", func() bool {
		made, err = getDefinition(client, name)
		must(t, err)
		return condition(made, "Established").Status == apiextensions.ConditionTrue
	})
	structure := condition(made, "NonStructuralSchema")
	if made.Spec.Version != "v1" || made.Spec.Validation == nil || structure.Reason != "Violations" {
		t.Errorf("the definition: %+v", made)
	}
	dynamicClient, err := dynamic.NewForConfig(config(t, encodings[0]))
	must(t, err)
	tabs := dynamicClient.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "tabs"}).Namespace(c.namespace)
	tab := func(name string, size any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1",
			"kind":       "Tab",
			"metadata":   map[string]any{"name": name},
			"spec":       map[string]any{"size": size, "unknown": "kept"},
		}}
	}
	kept, err := createCustom(tabs, tab("a", int64(3)))
	must(t, err)
	if text, _, _ := unstructured.NestedString(kept.Object, "spec", "unknown"); text != "kept" {
		t.Errorf("the object: %v", kept.Object)
	}
	if _, err = createCustom(tabs, tab("b", "three")); err == nil {
		t.Error("an object of a wrong type is accepted")
	}
}
