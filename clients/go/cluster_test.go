// Package clients tests client-go against a server.
package clients

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	patience = 120 * time.Second
)

var numbers atomic.Int64

// config is that of KUBECONFIG, with Protobuf as the type of content.
func config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + ",application/json"
	return config
}

// unique is a name that no other test has.
func unique(name string) string {
	return fmt.Sprintf("%s-%d-%d", name, os.Getpid(), numbers.Add(1))
}

// namespace creates one that is deleted at the end of the test.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	name := unique("go")
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods of the namespace have an account", func() bool {
		_, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	t.Cleanup(func() {
		_ = client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return name
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	check := func(context.Context) (bool, error) { return holds(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// recorder records requests and the media types of their responses.
type recorder struct {
	sync.Mutex
	next    http.RoundTripper
	answers []string
}

// record puts a recorder into a config.
func record(config *rest.Config) *recorder {
	r := &recorder{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { r.next = next; return r })
	return r
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		r.Lock()
		defer r.Unlock()
		r.answers = append(r.answers, request.URL.String()+" "+response.Header.Get("Content-Type"))
	}
	return response, err
}

// any reports whether a response has both texts.
func (r *recorder) any(url, contentType string) bool {
	r.Lock()
	defer r.Unlock()
	for _, answer := range r.answers {
		asked, answered, _ := strings.Cut(answer, " ")
		if strings.Contains(asked, url) && strings.HasPrefix(answered, contentType) {
			return true
		}
	}
	return false
}

// notTheirs leaves out the object that a controller creates in every namespace.
const notTheirs = "metadata.name!=kube-root-ca.crt"

func ours(options *metav1.ListOptions) { options.FieldSelector = notTheirs }
