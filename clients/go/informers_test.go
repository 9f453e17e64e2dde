package clients

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// streaming reports whether the process uses streaming lists.
func streaming() bool { return os.Getenv("KUBE_FEATURE_WatchListClient") == "true" }

// seen counts the events of an informer.
type seen struct{ added, updated, deleted atomic.Int64 }

func (s *seen) watch(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.added.Add(1) },
		UpdateFunc: func(_, _ any) { s.updated.Add(1) },
		DeleteFunc: func(any) { s.deleted.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.Run(t.Context().Done())
	eventually(t, "the informer has everything", informer.HasSynced)
}

// follow creates, changes and deletes objects while an informer watches.
func follow(t *testing.T, client kubernetes.Interface, namespace string, informer cache.SharedIndexInformer) {
	t.Helper()
	maps, ctx := client.CoreV1().ConfigMaps(namespace), t.Context()
	create := func(n int) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", n)}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		create(n)
	}
	s := &seen{}
	s.watch(t, informer)
	eventually(t, "what was there is told", func() bool { return s.added.Load() == 10 })
	for n := 10; n < 20; n++ {
		create(n)
	}
	for n := range 20 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", n), Labels: map[string]string{"l": "m"}}}
		if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "l=m"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "everything that followed is told", func() bool {
		return s.added.Load() == 20 && s.updated.Load() == 20 && s.deleted.Load() == 20
	})
	if left := informer.GetStore().ListKeys(); len(left) != 0 {
		t.Errorf("left in the store: %v", left)
	}
}

func TestTypedInformer(t *testing.T) {
	config := config(t)
	answers := record(config)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, c)
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(ns), informers.WithTweakListOptions(ours))
	follow(t, c, ns, factory.Core().V1().ConfigMaps().Informer())
	if asked := answers.any("sendInitialEvents=true", protobuf); asked != streaming() {
		t.Errorf("a streaming list was asked for and answered in Protobuf: %v", asked)
	}
	if listed := answers.any("limit=", protobuf); listed == streaming() {
		t.Errorf("a list was asked for: %v", listed)
	}
}

func TestMetadataInformer(t *testing.T) {
	config := config(t)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	answers := record(config)
	m, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, c)
	factory := metadatainformer.NewFilteredSharedInformerFactory(m, 0, ns, ours)
	follow(t, c, ns, factory.ForResource(configMaps).Informer())
	if !answers.any("/configmaps", protobuf) {
		t.Error("metadata did not come in Protobuf")
	}
}

func TestDynamicInformer(t *testing.T) {
	config := config(t)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, c)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(d, 0, ns, ours)
	follow(t, c, ns, factory.ForResource(configMaps).Informer())
}

func TestDynamicClient(t *testing.T) {
	config := config(t)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps, ctx := d.Resource(configMaps).Namespace(namespace(t, c)), t.Context()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"},
	}}
	made, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.SetLabels(map[string]string{"l": "m"})
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "l=m"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "ConfigMap" {
		t.Errorf("%v %v", list, err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
