package clients

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tests of this file are those of test/integration/controlplane/transformation with the same names.

func sha256Of(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// EncryptedObject of k8s.io/apiserver's kmsv2: the stored bytes after the prefix.
type encryptedObject struct {
	data       []byte
	keyID      string
	source     []byte
	sourceType uint64
}

// Reads the value that KMS v2 stored under a path.
func (p etcdPart) encryptedObject(path, provider string) (object encryptedObject) {
	p.t.Helper()
	rest, is := bytes.CutPrefix(p.value(path), []byte("k8s:enc:kms:v2:"+provider+":"))
	for is && len(rest) > 0 {
		number, kind, size := protowire.ConsumeTag(rest)
		if size < 0 {
			break
		}
		rest = rest[size:]
		var value []byte
		if kind == protowire.VarintType {
			object.sourceType, size = protowire.ConsumeVarint(rest)
		} else {
			value, size = protowire.ConsumeBytes(rest)
		}
		if size < 0 {
			break
		}
		rest = rest[size:]
		switch number {
		case 1:
			object.data = value
		case 2:
			object.keyID = string(value)
		case 3:
			object.source = value
		}
	}
	if !is || len(rest) > 0 {
		p.t.Fatalf("%s: %q", path, p.value(path))
	}
	return object
}

// Decrypts a value of etcd with the seed that a plugin received.
func (o encryptedObject) open(t *testing.T, seed []byte, path string) []byte {
	t.Helper()
	info, nonce, sealed := o.data[:32], o.data[32:44], o.data[44:]
	key, err := hkdf.Expand(sha256.New, seed, string(info), 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	open, err := aead.Open(nil, nonce, sealed, []byte(path))
	if err != nil {
		t.Error(path, err)
	}
	return open
}

func createPod(t *testing.T, config *rest.Config, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "busybox", Image: "busybox"}}}}
	return kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
}

// Starts a server that encrypts resources with a plugin; its pods need no service account.
func (p etcdPart) serveWith(resources string, providers ...string) (*rest.Config, func()) {
	file := encryptionFile(p.t, encryptionOf(append([]string{resources}, providers...)))
	return start(p.t, p.flags("--encryption-provider-config="+file, "--disable-admission-plugins=ServiceAccount")...)
}

// A seed, not a key, is the default (the type is 1). KMS v1 is refused (cargo test -p pintle --test bad_starts).
func TestDefaultValues(t *testing.T) {
	part := newEtcdPart(t)
	_, provider := listening(t, "kms-provider-defaults")
	config, _ := part.serveWith("pods", provider)
	if _, err := createPod(t, config, "test"); err != nil {
		t.Fatal(err)
	}
	if object := part.encryptedObject("/pods/default/test", "kms-provider-defaults"); object.sourceType != 1 {
		t.Errorf("%+v", object)
	}
}

func TestKMSv2Provider(t *testing.T) {
	part := newEtcdPart(t)
	plugin, provider := listening(t, "kms-provider-v2")
	config, _ := part.serveWith("secrets", provider)
	createSecret(t, config, "test-secret", "086a7ffc-0225-11e8-ba89-0ed5f89f718b")
	object := part.encryptedObject("/secrets/default/test-secret", "kms-provider-v2")
	aead := plugin.aead(object.keyID)
	seed, err := aead.Open(nil, object.source[:aead.NonceSize()], object.source[aead.NonceSize():], nil)
	if err != nil || !bytes.Equal(seed, plugin.sealed) {
		t.Error("the source is not what the plugin gave for the seed", err)
	}
	if open := object.open(t, seed, part.prefix+"/secrets/default/test-secret"); !bytes.Contains(open, []byte("086a7ffc-0225-11e8-ba89-0ed5f89f718b")) {
		t.Errorf("%q", open)
	}
	checkSecret(t, config, "test-secret", "086a7ffc-0225-11e8-ba89-0ed5f89f718b")
	metrics, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{
		`apiserver_envelope_encryption_dek_source_cache_size{provider_name="kms-provider-v2"} 1`,
		`apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:kms-provider-v2:"} 1`,
	} {
		if !strings.Contains(string(metrics), metric) {
			t.Errorf("without %s", metric)
		}
	}
}

// Upstream's steps 6 and 7, in which the clock advances, are tested in crates/server
// (`plugin.rs`).
func TestKMSv2ProviderKeyIDStaleness(t *testing.T) {
	t.Parallel()
	part := newEtcdPart(t)
	plugin, provider := listening(t, "kms-provider-stale")
	config, _ := part.serveWith("pods, deployments.apps", provider)
	pod, err := createPod(t, config, "test")
	if err != nil {
		t.Fatal(err)
	}
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default")
	// Updates the pod without a change; returns true if its resource version changed.
	writeAgain := func() bool {
		t.Helper()
		before := pod.ResourceVersion
		if pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return pod.ResourceVersion != before
	}
	stored := func() encryptedObject { return part.encryptedObject("/pods/default/test", "kms-provider-stale") }
	first := stored()
	if writeAgain() || first.keyID != "1" || len(first.source) == 0 {
		t.Errorf("%+v", first)
	}
	plugin.set(func() { plugin.key = "2" })
	eventually(t, "the pod is written by the new key", writeAgain)
	second := stored()
	if second.keyID != "2" || bytes.Equal(second.source, first.source) {
		t.Errorf("%+v", second)
	}
	if writeAgain() {
		t.Error("it is written once")
	}
	// While the plugin fails, the last seed is used.
	plugin.set(func() { plugin.failures = 1 << 30 })
	awaitPlugins(t, config, "kms-provider-0: ")
	if pod, err = createPod(t, config, "next"); err != nil {
		t.Fatal(err)
	}
	if writeAgain() {
		t.Error("nothing changed")
	}
	plugin.set(func() { plugin.failures = 0 })
	awaitPlugins(t, config, "")
	if writeAgain() {
		t.Error("the plugin came back with the same key")
	}
}

// Waits until the health check of the plugins has a text; "" means healthy.
func awaitPlugins(t *testing.T, config *rest.Config, part string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config).RESTClient()
	eventually(t, fmt.Sprintf("the plugins' health has %q", part), func() bool {
		var code int
		text, _ := client.Get().AbsPath("/readyz/kms-providers").Do(t.Context()).StatusCode(&code).Raw()
		return (code == 200) == (part == "") && strings.Contains(string(text), part)
	})
}

func TestKMSv2ProviderDEKSourceReuse(t *testing.T) {
	t.Parallel()
	part := newEtcdPart(t)
	plugin, provider := listening(t, "kms-provider-reuse")
	config, _ := part.serveWith("pods", provider)
	const count = 1000
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			for number := range count / 10 {
				if _, err := createPod(t, config, fmt.Sprintf("reuse-%d-%d", worker, number)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sources, infos := map[string]bool{}, map[string]bool{}
	for path := range part.values("/pods/default/") {
		object := part.encryptedObject(path, "kms-provider-reuse")
		if object.keyID != "1" || object.sourceType != 1 || bytes.Equal(object.data[:32], make([]byte, 32)) || bytes.Equal(object.data[32:36], make([]byte, 4)) {
			t.Errorf("%+v", object)
		}
		sources[string(object.source)], infos[string(object.data[:44])] = true, true
	}
	if len(sources) != 1 || len(infos) != count || plugin.encryption != 1 {
		t.Errorf("%d sources, %d of %d infos, %d calls", len(sources), len(infos), count, plugin.encryption)
	}
}

// Upstream: TestKMSv2Healthz; TestKMSHealthz and TestKMSHealthzWithReload are the same for v1.
func TestKMSv2Healthz(t *testing.T) {
	for _, reload := range []string{"false", "true"} {
		t.Run("reload="+reload, func(t *testing.T) {
			t.Parallel()
			plugin1, one := listening(t, "provider-1")
			plugin2, two := listening(t, "provider-2")
			file := encryptionFile(t, encryptionOf([]string{"secrets", one, two}))
			config := serve(t, "--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload="+reload)
			awaitPlugins(t, config, "")
			said := func(number int) string {
				return fmt.Sprintf("kms-provider-%d: failed to perform status section of the healthz check for KMS Provider provider-%d, error: rpc error: code = Unknown desc = the vault is closed", number, number+1)
			}
			plugin1.set(func() { plugin1.failures = 1 << 30 })
			awaitPlugins(t, config, said(0))
			plugin1.set(func() { plugin1.failures = 0 })
			plugin2.set(func() { plugin2.failures = 1 << 30 })
			awaitPlugins(t, config, said(1))
			plugin1.set(func() { plugin1.failures = 1 << 30 })
			awaitPlugins(t, config, "["+said(0)+", "+said(1)+"]")
			plugin1.set(func() { plugin1.failures = 0 })
			plugin2.set(func() { plugin2.failures = 0 })
			awaitPlugins(t, config, "")
		})
	}
}

// One plugin encrypts the resources of all three servers that a kube-apiserver consists of; it
// receives one seed.
func TestKMSv2SingleService(t *testing.T) {
	part := newEtcdPart(t)
	plugin, provider := listening(t, "kms-provider-single-service")
	config, _ := part.serveWith(ofAllServers, provider)
	pandas := define(t, config, "pandas", "Panda", "awesome.bears.com", "Cluster")
	createObject(t, config, pandas, "", `{"apiVersion":"awesome.bears.com/v1","kind":"Panda","metadata":{"name":"cr4panda"},"weight":78}`)
	if _, err := createPod(t, config, "test"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/awesome.bears.com/pandas/cr4panda", "/pods/default/test", "/apiextensions.k8s.io/customresourcedefinitions/pandas.awesome.bears.com"} {
		part.encryptedObject(path, "kms-provider-single-service")
	}
	if plugin.encryption != 1 {
		t.Errorf("asked for %d seeds", plugin.encryption)
	}
}

// `pintle doctor` reads a store whose values a plugin has encrypted, and cannot without the plugin's
// configuration.
func TestDoctorReadsAStoreOfAPlugin(t *testing.T) {
	_, provider := listening(t, "doctor")
	encryption := "--encryption-provider-config=" + encryptionFile(t, encryptionOf([]string{"secrets", provider}))
	directory := "--data-dir=" + t.TempDir()
	config, stop := start(t, directory, encryption)
	createSecret(t, config, "test-secret", "value")
	stop()
	for expected, flags := range map[string][]string{
		" records, revisions ":        {encryption},
		"no encryption is configured": {},
	} {
		command := append([]string{"doctor", "--secure-port=0", directory}, flags...)
		out, _ := exec.Command(os.Getenv("PINTLE"), command...).CombinedOutput() // the exit code is of all findings
		if !strings.Contains(string(out), expected) {
			t.Errorf("no %q: %s", expected, out)
		}
	}
}

// The next server decrypts the values of the first one.
func TestKMSv2FeatureFlag(t *testing.T) {
	part := newEtcdPart(t)
	_, provider := listening(t, "kms-provider-feature-flag")
	file := encryptionFile(t, encryptionOf([]string{"secrets", provider}))
	flags := part.flags("--encryption-provider-config=" + filepath.Clean(file))
	config, stop := start(t, flags...)
	createSecret(t, config, "test-secret", "value")
	checkSecret(t, config, "test-secret", "value")
	stop()
	config, _ = start(t, flags...)
	checkSecret(t, config, "test-secret", "value")
}
