package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key prefix in etcd in which servers store objects. The tests read and write it through etcd's
// JSON gateway.
type etcdPart struct {
	t      *testing.T
	url    string
	prefix string
}

// Skips the test if PINTLE_TEST_ETCD names no etcd (see ../with-etcd).
func newEtcdPart(t *testing.T) etcdPart {
	url := os.Getenv("PINTLE_TEST_ETCD")
	if url == "" {
		t.Skip("skipped: PINTLE_TEST_ETCD names no etcd")
	}
	return etcdPart{t, strings.TrimSuffix(url, "/"), "/" + unique("registry")}
}

// The flags of a server that stores its objects under this prefix.
func (p etcdPart) flags(more ...string) []string {
	own := []string{"--data-dir=" + filepath.Join(p.t.TempDir(), "data"), "--etcd-servers=" + p.url, "--etcd-prefix=" + p.prefix}
	return append(own, more...)
}

type etcdPair struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value,omitempty"`
	RangeEnd []byte `json:"range_end,omitempty"`
}

func (p etcdPart) call(method string, request etcdPair) (pairs []etcdPair) {
	p.t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.Post(p.url+"/v3/kv/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var found struct{ Kvs []etcdPair }
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &found) != nil {
		p.t.Fatalf("%s %s: %d %s %v", method, request.Key, answer.StatusCode, text, err)
	}
	return found.Kvs
}

// Returns the stored values below a path, by key.
func (p etcdPart) values(below string) map[string][]byte {
	p.t.Helper()
	begin := p.prefix + below
	end := append([]byte(begin[:len(begin)-1]), begin[len(begin)-1]+1)
	values := map[string][]byte{}
	for _, pair := range p.call("range", etcdPair{Key: []byte(begin), RangeEnd: end}) {
		values[strings.TrimPrefix(string(pair.Key), p.prefix)] = pair.Value
	}
	return values
}

// Returns the value that is stored under a path.
func (p etcdPart) value(path string) []byte {
	p.t.Helper()
	pairs := p.call("range", etcdPair{Key: []byte(p.prefix + path)})
	if len(pairs) != 1 {
		p.t.Fatalf("%d values under %s", len(pairs), path)
	}
	return pairs[0].Value
}

func (p etcdPart) put(path string, value []byte) {
	p.t.Helper()
	p.call("put", etcdPair{Key: []byte(p.prefix + path), Value: value})
}
