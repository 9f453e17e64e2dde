package clients

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file are those of test/integration/controlplane/transformation with the same names, with
// plugins of KMS v2 instead of v1.

// Creates secrets until one is stored with a prefix.
func (p etcdPart) awaitPrefix(config *rest.Config, prefix string) {
	p.t.Helper()
	eventually(p.t, "secrets are stored with "+prefix, func() bool {
		name := unique("secret")
		createSecret(p.t, config, name, "value")
		return bytes.HasPrefix(p.value("/secrets/default/"+name), []byte(prefix))
	})
}

// Updates every secret and config map without a change.
func migrate(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(config).CoreV1()
	secrets, err := client.Secrets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if _, err := client.Secrets(secret.Namespace).Update(ctx, &secret, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	maps, err := client.ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range maps.Items {
		if _, err := client.ConfigMaps(object.Namespace).Update(ctx, &object, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func (p etcdPart) checkPrefix(path, prefix string) {
	p.t.Helper()
	if value := p.value(path); !bytes.HasPrefix(value, []byte(prefix)) {
		p.t.Errorf("%s is stored as %q, not with %s", path, value[:min(len(value), 60)], prefix)
	}
}

func TestEncryptionConfigHotReload(t *testing.T) {
	t.Parallel()
	part := newEtcdPart(t)
	_, old := listening(t, "kms-provider")
	_, forSecrets := listening(t, "new-kms-provider-for-secrets")
	_, forMaps := listening(t, "new-kms-provider-for-configmaps")
	_, forAll := listening(t, "kms-provider-to-encrypt-all")
	file := encryptionFile(t, encryptionOf([]string{"secrets", old}))
	flags := part.flags("--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload=true")
	config, stop := start(t, flags...)
	client := kubernetes.NewForConfigOrDie(config)
	createSecret(t, config, "test-secret", "value")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "test-configmap"}, Data: map[string]string{"a": "b"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	part.checkPrefix("/secrets/default/test-secret", "k8s:enc:kms:v2:kms-provider:")
	health := func(path string) string {
		text, err := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if found := health("/readyz/kms-providers"); found != "ok" {
		t.Error(found)
	}
	if found := health("/livez/poststarthook/start-encryption-provider-config-automatic-reload"); found != "ok" {
		t.Error(found)
	}
	if found := health("/livez/kms-providers"); found == "ok" {
		t.Error("plugins do not decide whether the server lives")
	}

	writeFile(t, file, encryptionOf([]string{"secrets", forSecrets, old}, []string{"configmaps", forMaps, "identity: {}"}))
	part.awaitPrefix(config, "k8s:enc:kms:v2:new-kms-provider-for-secrets:")
	migrate(t, config)
	part.checkPrefix("/secrets/default/test-secret", "k8s:enc:kms:v2:new-kms-provider-for-secrets:")
	part.checkPrefix("/configmaps/default/test-configmap", "k8s:enc:kms:v2:new-kms-provider-for-configmaps:")

	last := encryptionOf([]string{"secrets", forSecrets}, []string{"configmaps", forMaps}, []string{"'*.*'", forAll, "identity: {}"})
	writeFile(t, file, last)
	eventually(t, "everything is encrypted", func() bool {
		name := unique("account")
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return bytes.HasPrefix(part.value("/serviceaccounts/default/"+name), []byte("k8s:enc:kms:v2:kms-provider-to-encrypt-all:"))
	})
	metrics := health("/metrics")
	for _, metric := range []string{
		`apiserver_encryption_config_controller_automatic_reloads_total{`, `status="success"} 2`,
		`apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds{`,
		fmt.Sprintf(`hash="sha256:%x"} 1`, sha256Of(last)),
	} {
		if !strings.Contains(metrics, metric) {
			t.Errorf("without %s", metric)
		}
	}
	readAll := func() {
		t.Helper()
		client := kubernetes.NewForConfigOrDie(config).CoreV1()
		checkSecret(t, config, "test-secret", "value")
		if _, err := client.Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.ConfigMaps("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	readAll()
	stop()
	config, _ = start(t, flags...)
	readAll()
}

func TestEncryptionConfigHotReloadFilePolling(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, file, text string) error{
		"truncate file": func(_ *testing.T, file, text string) error { return os.WriteFile(file, []byte(text), 0o644) },
		"delete and create file": func(_ *testing.T, file, text string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.WriteFile(file, []byte(text), 0o644)
		},
		"move file": func(_ *testing.T, file, text string) error {
			if err := os.WriteFile(file+".tmp", []byte(text), 0o644); err != nil {
				return err
			}
			return os.Rename(file+".tmp", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part := newEtcdPart(t)
			_, old := listening(t, "kms-provider")
			_, next := listening(t, "new-kms-provider-for-secrets")
			forMaps := strings.Replace(next, "-for-secrets", "-for-configmaps", 1)
			file := encryptionFile(t, encryptionOf([]string{"secrets", old}))
			config, _ := start(t, part.flags("--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload=true")...)
			createSecret(t, config, "test-secret", "value")
			if err := replace(t, file, encryptionOf([]string{"secrets", next, old}, []string{"configmaps", forMaps, "identity: {}"})); err != nil {
				t.Fatal(err)
			}
			part.awaitPrefix(config, "k8s:enc:kms:v2:new-kms-provider-for-secrets:")
			migrate(t, config)
			part.checkPrefix("/secrets/default/test-secret", "k8s:enc:kms:v2:new-kms-provider-for-secrets:")
			checkSecret(t, config, "test-secret", "value")
		})
	}
}

// Invalid states of the file during a replacement leave the previous configuration active;
// requests succeed throughout, and nothing is stored unencrypted.
func TestEncryptionFileRaces(t *testing.T) {
	part := newEtcdPart(t)
	one, other := keyed("aesgcm"), strings.ReplaceAll(keyed("secretbox"), transformationKey, "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
	whole := encryptionOf([]string{"secrets", one})
	file := encryptionFile(t, whole)
	config, _ := start(t, part.flags("--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload=true")...)
	createSecret(t, config, "first", "value")
	client := kubernetes.NewForConfigOrDie(config)
	failures := func() string {
		text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "apiserver_encryption_config_controller_automatic_reloads_total{") && strings.Contains(line, `status="failure"`) {
				return line
			}
		}
		return ""
	}
	writing := func(text string) func() error { return func() error { return os.WriteFile(file, []byte(text), 0o600) } }
	for name, spoil := range map[string]func() error{
		"half":            writing(whole[:len(whole)-30]),
		"empty":           writing(""),
		"of another kind": writing("kind: Other\napiVersion: apiserver.config.k8s.io/v1\n"),
		"without keys":    writing(encryptionOf([]string{"secrets", "aesgcm: {keys: []}"})),
		"gone":            func() error { return os.Remove(file) },
		"a directory": func() error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
	} {
		before := failures()
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		eventually(t, name+": a failed reload is counted", func() bool { return failures() != before })
		secret := unique("secret")
		createSecret(t, config, secret, "value")
		part.checkPrefix("/secrets/default/"+secret, "k8s:enc:aesgcm:v1:key1:")
		checkSecret(t, config, "first", "value")
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, whole)
	}
	// Many changes at once: the last one counts.
	for number := range 200 {
		text := []string{whole, whole[:len(whole)/2], ""}[number%3]
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, file, encryptionOf([]string{"secrets", other, one}))
	part.awaitPrefix(config, "k8s:enc:secretbox:v1:key1:")
	checkSecret(t, config, "first", "value")
}
