package pintletest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	patience = 60 * time.Second
	// victim is the variable with which the test program starts a server and waits to be killed.
	victim = "PINTLETEST_VICTIM"
)

func TestMain(m *testing.M) {
	if os.Getenv(victim) == "" {
		os.Exit(m.Run())
	}
	server, err := New()
	if err != nil {
		panic(err)
	}
	fmt.Println(server.Config.Host)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Two servers have a namespace of the same name.
func TestAServerIsTheTestsOwn(t *testing.T) {
	for number := range 2 {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			client := kubernetes.NewForConfigOrDie(Start(t))
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFlagsArePassed(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(Start(t, "--emulated-version=1.35"))
	version, err := client.Discovery().ServerVersion()
	if err != nil || version.EmulationMinor != "35" {
		t.Fatal(version, err)
	}
}

func TestAServerEndsWithItsTest(t *testing.T) {
	var server *Server
	t.Run("test", func(t *testing.T) { server = StartServer(t) })
	if !refusesConnections(server.Config.Host) {
		t.Error("the server runs after its test")
	}
	if _, err := os.Stat(server.Kubeconfig); !os.IsNotExist(err) {
		t.Error("the server leaves its kubeconfig:", err)
	}
}

func TestAServerEndsWithAProcessThatIsKilled(t *testing.T) {
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), victim+"=1")
	input, _ := process.StdinPipe()
	output, _ := process.StdoutPipe()
	// The server inherits this pipe, which ends when both processes have.
	errors, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Stderr = writer
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	defer func() { _ = input.Close() }()
	host, err := bufio.NewReader(output).ReadString('\n')
	host = strings.TrimSpace(host)
	if err != nil || refusesConnections(host) {
		t.Fatal("no server", host, err)
	}
	_ = process.Process.Kill()
	_ = errors.SetReadDeadline(time.Now().Add(patience))
	if text, err := io.ReadAll(errors); err != nil {
		t.Errorf("the server runs after the process was killed: %v %s", err, text)
	}
	_ = process.Wait()
	if !refusesConnections(host) {
		t.Error("the server answers after the process was killed")
	}
}

func TestAServerMayWriteMoreThanAPipeHolds(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy")
	write(t, policy, "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}")
	server := StartServer(t, "--audit-policy-file="+policy, "--audit-log-path=-")
	server.Config.Timeout = patience
	configMaps := kubernetes.NewForConfigOrDie(server.Config).CoreV1().ConfigMaps("default")
	for number := range 100 {
		large := &corev1.ConfigMap{Data: map[string]string{"text": strings.Repeat("x", 2048)}}
		large.Name = fmt.Sprintf("large-%d", number)
		if _, err := configMaps.Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stops(t, server)
}

func TestLinesBeforeTheOneOfAReadyServerAreSkipped(t *testing.T) {
	script(t, "echo first; echo pintle ready to sail; exec $PINTLE")
	stops(t, StartServer(t))
}

func TestAServerThatDoesNotSeeTheEndOfThePipeIsStopped(t *testing.T) {
	script(t, `mkfifo "$0.pipe"; exec $PINTLE <>"$0.pipe"`)
	stops(t, StartServer(t))
}

func TestAStartThatFailsLeavesNothing(t *testing.T) {
	program := script(t, `mkdir "$0.tmp"; export TMPDIR="$0.tmp"
(sleep 1; echo pintle ready url=u kubeconfig=/nowhere/k) &
exec $PINTLE >/dev/null`)
	if _, err := New(); err == nil || !strings.Contains(err.Error(), "/nowhere/k") {
		t.Error(err)
	}
	if left, err := os.ReadDir(program + ".tmp"); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestAWrongStartIsAnError(t *testing.T) {
	if _, err := New("--nonsense"); err == nil || !strings.Contains(err.Error(), "does not start") {
		t.Error(err)
	}
	t.Setenv("PINTLE", "")
	t.Setenv("PATH", "/nowhere")
	if _, err := New(); err == nil || !strings.Contains(err.Error(), "PINTLE") {
		t.Error(err)
	}
}

// script lets PINTLE name a script, in which $PINTLE is the server with its arguments. It returns the script's path.
func script(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "pintle")
	text = strings.ReplaceAll(text, "$PINTLE", "'"+os.Getenv("PINTLE")+"' \"$@\"")
	write(t, path, "#!/bin/sh\n"+text+"\n")
	t.Setenv("PINTLE", path)
	return path
}

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// stops stops a server; one that has to be killed takes longer.
func stops(t *testing.T, server *Server) {
	before := time.Now()
	server.Stop()
	if took := time.Since(before); took > stopMax/2 {
		t.Error("the server stops after", took)
	}
	if _, err := os.Stat(server.Kubeconfig); !os.IsNotExist(err) {
		t.Error("the server leaves its kubeconfig:", err)
	}
}

func refusesConnections(host string) bool {
	address, err := url.Parse(host)
	if err != nil {
		return true
	}
	connection, err := net.Dial("tcp", address.Host)
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}
