// Two kubelets that run commands of this machine: the streaming server of the container runtimes, behind a
// kubelet's paths. The first speaks SPDY and the older kinds of WebSockets, as kubelets before 1.36 do; the
// second is as those from 1.36 on, which declare ExtendWebSocketsToKubelet.
//
// Usage: kubelet OLD_PORT NEW_PORT
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/proxy"
	translator "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

// machine runs what it is told on this machine.
type machine struct{}

func (machine) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader, out, errors io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if container == "absent" {
		return fmt.Errorf("container not found (%q)", container)
	}
	if command[0] == "size" {
		size := <-resize
		fmt.Fprintf(out, "%d columns, %d rows\n", size.Width, size.Height)
		return nil
	}
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	// Given as a pipe, so that a command which does not read does not wait for its input to end.
	if in != nil {
		pipe, err := program.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer pipe.Close()
			io.Copy(pipe, in)
		}()
	}
	program.Stdout, program.Stderr = out, errors
	if tty {
		program.Stderr = out
	}
	err := program.Run()
	if ended, ok := err.(*exec.ExitError); ok {
		code := ended.ExitCode()
		if code < 0 {
			code = 137
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

func (m machine) AttachContainer(ctx context.Context, name, uid, container string, in io.Reader, out, errors io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return m.ExecInContainer(ctx, name, uid, container, []string{"cat"}, in, out, errors, tty, resize, 0)
}

func (machine) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	done := make(chan struct{}, 2)
	go func() {
		io.Copy(connection, stream)
		connection.(*net.TCPConn).CloseWrite()
		done <- struct{}{}
	}()
	go func() {
		io.Copy(stream, connection)
		done <- struct{}{}
	}()
	<-done
	return nil
}

func serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	log.Print(r.Method, " ", r.URL, " ", r.Header.Get("Upgrade"), " ", r.Header.Values("Sec-Websocket-Protocol"), r.Header.Values("X-Stream-Protocol-Version"))
	container := parts[len(parts)-1]
	switch parts[0] {
	case "containerLogs":
		follow(w, r)
	case "exec", "attach":
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if parts[0] == "attach" {
			remotecommand.ServeAttach(w, r, machine{}, "", "", container, options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
			return
		}
		command := r.URL.Query()["command"]
		remotecommand.ServeExec(w, r, machine{}, "", "", container, command, options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	case "portForward":
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, machine{}, "", "", options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
	default:
		http.NotFound(w, r)
	}
}

// follow writes ten lines, and with `follow` ten more.
func follow(w http.ResponseWriter, r *http.Request) {
	lines := 10
	if r.URL.Query().Get("follow") == "true" {
		lines = 20
	}
	for line := range lines {
		fmt.Fprintf(w, "line %d of %s\n", line, r.URL.Path)
		w.(http.Flusher).Flush()
	}
}

// modern is what a kubelet from 1.36 on does before its streaming server, which is at an address of its own.
type modern struct{ streaming string }

func (m modern) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	location := &url.URL{Scheme: "http", Host: m.streaming, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	var handler http.Handler = proxy.NewUpgradeAwareHandler(location, nil, false, false, refusal{})
	switch kind, _, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/"); {
	case kind == "portForward" && wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		handler = translator.NewTunnelingHandler(handler)
	case (kind == "exec" || kind == "attach") && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		handler = translator.NewStreamTranslatorHandler(location, nil, 0, translator.Options{
			Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: options.TTY,
		})
	}
	handler.ServeHTTP(w, r)
}

type refusal struct{}

func (refusal) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

func main() {
	config := identity()
	listen := func(port string) net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			log.Fatal(err)
		}
		return listener
	}
	streaming, first, second := listen("0"), listen(os.Args[1]), listen(os.Args[2])
	port := func(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
	go http.Serve(streaming, http.HandlerFunc(serve))
	go http.Serve(tls.NewListener(first, config), http.HandlerFunc(serve))
	fmt.Println(port(first), port(second))
	log.Fatal(http.Serve(tls.NewListener(second, config), modern{streaming.Addr().String()}))
}

// identity is a self-signed serving certificate.
func identity() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{"http/1.1"},
		ClientAuth:   tls.RequestClientCert,
	}
}
