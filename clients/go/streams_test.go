package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

// onKubelets runs a test with a pod on an old kubelet, and with one on a new one. Its containers run on this
// machine.
func onKubelets(t *testing.T, test func(*testing.T, *rest.Config, *corev1.Pod)) {
	kubelets := strings.Fields(os.Getenv("PINTLE_TEST_KUBELETS"))
	if len(kubelets) != 2 {
		t.Skip("there are no kubelets (see ../with-kubelet)")
	}
	for index, name := range []string{"old", "new"} {
		t.Run(name, func(t *testing.T) {
			config := config(t)
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			port, err := strconv.Atoi(kubelets[index])
			if err != nil {
				t.Fatal(err)
			}
			test(t, config, pod(t, client, int32(port), name == "new"))
		})
	}
}

// pod creates one on its own node.
func pod(t *testing.T, client kubernetes.Interface, port int32, isNew bool) *corev1.Pod {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: unique("node")}}
	node, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{})
	})
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if isNew {
		node.Status.DeclaredFeatures = []string{"ExtendWebSocketsToKubelet"}
	}
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	pod, err = client.CoreV1().Pods(namespace(t, client)).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func subresource(t *testing.T, config *rest.Config, pod *corev1.Pod, name string) *rest.Request {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(name)
}

// executors are one that only uses WebSockets, and one that only uses SPDY.
func executors(t *testing.T, config *rest.Config, pod *corev1.Pod, options *corev1.PodExecOptions) map[string]remotecommand.Executor {
	t.Helper()
	options.Container = "c"
	url := subresource(t, config, pod, "exec").VersionedParams(options, scheme.ParameterCodec).URL()
	websocket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	if err != nil {
		t.Fatal(err)
	}
	overSPDY, err := remotecommand.NewSPDYExecutor(config, "POST", url)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"websocket": websocket, "spdy": overSPDY}
}

func TestCommandsReturnOutputAndExitCodes(t *testing.T) {
	onKubelets(t, func(t *testing.T, config *rest.Config, pod *corev1.Pod) {
		for code, script := range map[int]string{
			0: "echo out; echo err >&2", 1: "echo out; echo err >&2; exit 1", 137: "echo out; echo err >&2; kill -9 $$",
		} {
			options := &corev1.PodExecOptions{Command: []string{"sh", "-c", script}, Stdout: true, Stderr: true}
			for name, executor := range executors(t, config, pod, options) {
				var out, errs bytes.Buffer
				err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
				ended, got := exec.CodeExitError{}, 0
				if errors.As(err, &ended) {
					got = ended.Code
				} else if err != nil {
					t.Fatal(name, err)
				}
				if got != code || out.String() != "out\n" || errs.String() != "err\n" {
					t.Fatalf("%s: code %d, %q, %q", name, got, out.String(), errs.String())
				}
			}
		}
	})
}

// bytesEachWay returns PINTLE_TEST_BYTES, or 8 MiB.
func bytesEachWay(t *testing.T) int {
	said := os.Getenv("PINTLE_TEST_BYTES")
	if said == "" {
		return 8 << 20
	}
	count, err := strconv.Atoi(said)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestInputEndsAndManyBytesAreCopiedBothWays(t *testing.T) {
	onKubelets(t, func(t *testing.T, config *rest.Config, pod *corev1.Pod) {
		sent := make([]byte, bytesEachWay(t))
		rand.Read(sent)
		options := &corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true}
		for name, executor := range executors(t, config, pod, options) {
			received := sha256.New()
			streams := remotecommand.StreamOptions{Stdin: bytes.NewReader(sent), Stdout: received}
			if err := executor.StreamWithContext(t.Context(), streams); err != nil {
				t.Fatal(name, err)
			}
			if want := sha256.Sum256(sent); !bytes.Equal(received.Sum(nil), want[:]) {
				t.Fatal(name, "other bytes came back")
			}
		}
	})
}

type size struct{ told bool }

func (s *size) Next() *remotecommand.TerminalSize {
	if s.told {
		return nil
	}
	s.told = true
	return &remotecommand.TerminalSize{Width: 91, Height: 33}
}

func TestTerminalsAreResized(t *testing.T) {
	onKubelets(t, func(t *testing.T, config *rest.Config, pod *corev1.Pod) {
		options := &corev1.PodExecOptions{Command: []string{"size"}, Stdin: true, Stdout: true, TTY: true}
		for name, executor := range executors(t, config, pod, options) {
			in, more := io.Pipe()
			var out bytes.Buffer
			streams := remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true, TerminalSizeQueue: &size{}}
			err := executor.StreamWithContext(t.Context(), streams)
			more.Close()
			if err != nil || out.String() != "91 columns, 33 rows\n" {
				t.Fatal(name, err, out.String())
			}
		}
	})
}

func TestLogsAreFollowed(t *testing.T) {
	onKubelets(t, func(t *testing.T, config *rest.Config, pod *corev1.Pod) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		options := &corev1.PodLogOptions{Container: "c", Follow: true}
		log, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(t.Context())
		if err != nil || strings.Count(string(log), "\n") != 20 {
			t.Fatal(err, string(log))
		}
	})
}

func TestPortsAreForwarded(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.URL.Path, " ", length)
	}))
	defer site.Close()
	remote := site.Listener.Addr().(*net.TCPAddr).Port
	onKubelets(t, func(t *testing.T, config *rest.Config, pod *corev1.Pod) {
		url := subresource(t, config, pod, "portforward").URL()
		tunnel, err := portforward.NewSPDYOverWebsocketDialer(url, config)
		if err != nil {
			t.Fatal(err)
		}
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			t.Fatal(err)
		}
		overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", url)
		for name, dialer := range map[string]httpstream.Dialer{"websocket": tunnel, "spdy": overSPDY} {
			stop, ready := make(chan struct{}), make(chan struct{})
			forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", remote)}, stop, ready, io.Discard, os.Stderr)
			if err != nil {
				t.Fatal(name, err)
			}
			ended := make(chan error, 1)
			go func() { ended <- forwarder.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-ended:
				t.Fatal(name, err)
			}
			ports, err := forwarder.GetPorts()
			if err != nil {
				t.Fatal(name, err)
			}
			for path := range 3 {
				address := fmt.Sprintf("http://127.0.0.1:%d/%d", ports[0].Local, path)
				answer, err := http.Post(address, "text/plain", bytes.NewReader(make([]byte, 1<<20)))
				if err != nil {
					t.Fatal(name, err)
				}
				text, err := io.ReadAll(answer.Body)
				if want := fmt.Sprintf("/%d %d", path, 1<<20); err != nil || string(text) != want {
					t.Fatal(name, err, string(text))
				}
				answer.Body.Close()
			}
			http.DefaultClient.CloseIdleConnections()
			close(stop)
			if err := <-ended; err != nil {
				t.Fatal(name, err)
			}
		}
	})
}
