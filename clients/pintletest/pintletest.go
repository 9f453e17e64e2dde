// Package pintletest starts Pintle, a Kubernetes API server, for a test:
//
//	config := pintletest.Start(t)                    // *rest.Config of an administrator
//	client := kubernetes.NewForConfigOrDie(config)
//
// Each server is one process that stores nothing on disk and is ready within milliseconds. It waits for the end of
// a pipe that only the test's process holds, and the system closes the pipe even if that process is killed.
package pintletest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startMax = 60 * time.Second
	stopMax  = 10 * time.Second
)

// Start starts a server with further flags of `pintle serve`. It ends with the test.
func Start(t testing.TB, flags ...string) *rest.Config {
	t.Helper()
	return StartServer(t, flags...).Config
}

// StartServer is Start for tests that need the kubeconfig, too.
func StartServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	server, err := New(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Server is a running server.
type Server struct {
	// Config has the credentials of an administrator, and no limit of the client's own on requests.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig with the same credentials.
	Kubeconfig string

	command *exec.Cmd
	input   io.Closer
	// ended is closed when the server has closed its standard output.
	ended chan struct{}
}

// New starts a server that is not a test's, for example in TestMain. It ends at Stop, or with the process.
func New(flags ...string) (*Server, error) {
	program, err := program()
	if err != nil {
		return nil, err
	}
	arguments := []string{"serve", "--ephemeral", "--secure-port=0", "--stop-at-eof"}
	command := exec.Command(program, append(arguments, flags...)...)
	// A later variable of the same name counts. RUST_LOG=pintle=info shows more of the log.
	command.Env = append([]string{"RUST_LOG=error"}, os.Environ()...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	server := &Server{command: command, input: input, ended: make(chan struct{})}
	if err := server.waitUntilReady(output); err != nil {
		server.Stop()
		return nil, err
	}
	return server, nil
}

// program is what PINTLE names, or else pintle on the PATH.
func program() (string, error) {
	if program := os.Getenv("PINTLE"); program != "" {
		return program, nil
	}
	program, err := exec.LookPath("pintle")
	if err != nil {
		return "", fmt.Errorf("no Pintle: put `pintle` on the PATH, or let PINTLE name it: %w", err)
	}
	return program, nil
}

// waitUntilReady waits for the line that the server prints when it is ready:
//
//	pintle ready url=https://127.0.0.1:36041 kubeconfig=/tmp/pintle-…/admin.kubeconfig
func (s *Server) waitUntilReady(output io.Reader) error {
	kubeconfigs := make(chan string, 1)
	go s.read(output, kubeconfigs)
	select {
	case <-time.After(startMax):
		return fmt.Errorf("pintle is not ready after %v", startMax)
	case kubeconfig, ready := <-kubeconfigs:
		if !ready {
			return errors.New("pintle does not start; standard error has the reason")
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		config.QPS, config.Burst = -1, 0
		s.Config, s.Kubeconfig = config, kubeconfig
		return nil
	}
}

// read reads what the server prints until it ends, because the server waits when the pipe is full. It sends the
// path in the line of a ready server.
func (s *Server) read(output io.Reader, kubeconfigs chan<- string) {
	defer close(s.ended)
	defer close(kubeconfigs)
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		ready, kubeconfig, found := strings.Cut(strings.TrimSpace(line), " kubeconfig=")
		if found && strings.HasPrefix(ready, "pintle ready url=") {
			kubeconfigs <- kubeconfig
			break
		}
	}
	_, _ = io.Copy(io.Discard, reader)
}

// Stop stops the server and waits until it has ended.
func (s *Server) Stop() {
	// The server finishes open requests after the first signal, and ends at once after the second.
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		_ = s.command.Process.Signal(signal)
		_ = s.input.Close()
		select {
		case <-s.ended:
			_ = s.command.Wait()
			return
		case <-time.After(stopMax):
		}
	}
	_ = s.command.Wait()
}
