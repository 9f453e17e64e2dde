package clients

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kms/pkg/service"
)

// A KMS plugin whose keys derive from their names.
type vault struct {
	mutex      sync.Mutex
	key        string
	encryption int
	decryption int
	// The number of further calls that fail, and the duration of each call.
	failures int
	pause    time.Duration
	// The last plaintext that was encrypted.
	sealed []byte
}

// Changes the plugin while it serves.
func (v *vault) set(change func()) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	change()
}

func (v *vault) aead(key string) cipher.AEAD {
	secret := sha256.Sum256([]byte(key))
	block, _ := aes.NewCipher(secret[:])
	aead, _ := cipher.NewGCM(block)
	return aead
}

func (v *vault) begin() error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	time.Sleep(v.pause)
	if v.failures > 0 {
		v.failures--
		return errors.New("the vault is closed")
	}
	return nil
}

func (v *vault) Status(context.Context) (*service.StatusResponse, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: v.key}, nil
}

func (v *vault) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	v.encryption++
	v.sealed = bytes.Clone(data)
	aead := v.aead(v.key)
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	sealed := aead.Seal(nonce, nonce, data, nil)
	annotations := map[string][]byte{"vault.example": []byte(v.key)}
	return &service.EncryptResponse{Ciphertext: sealed, KeyID: v.key, Annotations: annotations}, nil
}

func (v *vault) Decrypt(_ context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	v.decryption++
	if string(request.Annotations["vault.example"]) != request.KeyID {
		return nil, errors.New("the annotations are not those of the key")
	}
	aead := v.aead(request.KeyID)
	return aead.Open(nil, request.Ciphertext[:aead.NonceSize()], request.Ciphertext[aead.NonceSize():], nil)
}

// Listens on a socket until it is stopped.
func (v *vault) listen(t *testing.T, socket string) func() {
	_ = os.Remove(socket)
	server := service.NewGRPCService(socket, time.Minute, v)
	go func() { _ = server.ListenAndServe() }()
	stop := sync.OnceFunc(server.Shutdown)
	t.Cleanup(stop)
	return stop
}

func createSecret(t *testing.T, config *rest.Config, name, value string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": value}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func checkSecret(t *testing.T, config *rest.Config, name, value string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	secret, err := client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found := string(secret.Data["a"]); found != value {
		t.Errorf("%s: %q", name, found)
	}
}

// Upstream: TestKMSv2Provider, TestKMSv2ProviderKeyIDStaleness, TestKMSv2Healthz of
// test/integration/controlplane/transformation.
func TestEncryptionByPlugin(t *testing.T) {
	// The path of a socket must be short.
	directory, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	socket, file := filepath.Join(directory, "socket"), filepath.Join(directory, "encryption.yaml")
	text := `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ['*.*']
  providers:
  - kms: {apiVersion: v2, name: vault, endpoint: "unix://` + socket + `"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(directory, "data")
	flags := []string{"--data-dir=" + data, "--encryption-provider-config=" + file}
	stored := func(what string) bool {
		for _, file := range []string{"store.journal", "store.redb"} {
			content, err := os.ReadFile(filepath.Join(data, "store", file))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(what)) {
				return true
			}
		}
		return false
	}

	// A start waits for a plugin that fails at first.
	plugin := &vault{key: "first", failures: 2}
	hangUp := plugin.listen(t, socket)
	config, stop := start(t, flags...)
	createSecret(t, config, "one", "the-launch-code")
	if stored("dGhlLWxhdW5jaC1jb2Rl") || !stored("k8s:enc:kms:v2:vault:") {
		t.Error("the secret is stored as it is")
	}
	health, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(health), "[+]kms-providers ok") {
		t.Error(string(health), err)
	}

	// One seed serves all values, also while the plugin is unavailable and afterwards.
	hangUp()
	createSecret(t, config, "two", "another")
	hangUp = plugin.listen(t, socket)
	createSecret(t, config, "three", "a-third")
	if plugin.encryption != 1 || plugin.decryption != 0 {
		t.Error(plugin.encryption, plugin.decryption)
	}
	stop()

	// Each start creates another seed, and has the plugin decrypt the first one once.
	config, stop = start(t, flags...)
	checkSecret(t, config, "one", "the-launch-code")
	if plugin.encryption != 2 || plugin.decryption != 1 {
		t.Error(plugin.encryption, plugin.decryption)
	}
	stop()

	// A slow plugin has a new key, and the server rewrites all values with it.
	plugin.set(func() { plugin.key, plugin.pause = "second", 300*time.Millisecond })
	config, stop = start(t, flags...)
	checkSecret(t, config, "two", "another")
	if stored("first") || !stored("second") {
		t.Error("values of the old key are left")
	}
	stop()
	hangUp()
}
