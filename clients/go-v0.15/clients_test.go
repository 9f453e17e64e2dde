// Package clients has tests with clients of their time: client-go v0.15 and, with the tag context, later ones.
// They use versions of the API that the server serves only on request.
package clients

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// encodings are the media types of requests: by default client-go sends JSON.
var encodings = []string{"application/json", "application/vnd.kubernetes.protobuf"}

// calls are typed calls in a namespace; their signatures differ between releases.
type calls struct {
	kubernetes.Interface
	namespace string
}

func config(t *testing.T, encoding string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	config.ContentType = encoding
	return config
}

// start returns the calls in a new namespace.
func start(t *testing.T, encoding string) calls {
	t.Helper()
	client, err := kubernetes.NewForConfig(config(t, encoding))
	must(t, err)
	c := calls{Interface: client}
	namespace, err := c.createNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "old-"}})
	must(t, err)
	c.namespace = namespace.Name
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually fails if a condition does not come true within a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// seen counts the events of an informer.
type seen struct{ added, updated, deleted atomic.Int64 }

func watched(informer cache.SharedIndexInformer) *seen {
	s := &seen{}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.added.Add(1) },
		UpdateFunc: func(_, _ any) { s.updated.Add(1) },
		DeleteFunc: func(any) { s.deleted.Add(1) },
	})
	return s
}

func (s *seen) is(added, updated, deleted int64) func() bool {
	return func() bool {
		return s.added.Load() == added && s.updated.Load() == updated && s.deleted.Load() == deleted
	}
}
