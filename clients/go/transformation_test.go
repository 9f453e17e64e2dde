package clients

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// The tests of this file are those of test/integration/controlplane/transformation with the same names.

const transformationKey = "c2VjcmV0IGlzIHNlY3VyZQ==" // "secret is secure"

// A provider with the test's key.
func keyed(method string) string {
	return fmt.Sprintf("%s: {keys: [{name: key1, secret: %s}]}", method, transformationKey)
}

// An EncryptionConfiguration with rules: resources, then their providers.
func encryptionOf(rules ...[]string) string {
	text := "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
	for _, rule := range rules {
		text += fmt.Sprintf("- resources: [%s]\n  providers:\n  - %s\n", rule[0], strings.Join(rule[1:], "\n  - "))
	}
	return text
}

// A file with a configuration.
func encryptionFile(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	writeFile(t, file, text)
	return file
}

// Decrypts a value that aescbc stored.
func openCBC(t *testing.T, sealed []byte, _ string) []byte {
	key, _ := base64.StdEncoding.DecodeString(transformationKey)
	block, err := aes.NewCipher(key)
	if err != nil || len(sealed) < 32 || len(sealed)%16 != 0 {
		t.Fatal(len(sealed), err)
	}
	open := make([]byte, len(sealed)-16)
	cipher.NewCBCDecrypter(block, sealed[:16]).CryptBlocks(open, sealed[16:])
	return open[:len(open)-int(open[len(open)-1])]
}

// Decrypts a value that aesgcm stored under a key of etcd.
func openGCM(t *testing.T, sealed []byte, path string) []byte {
	key, _ := base64.StdEncoding.DecodeString(transformationKey)
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	open, err := aead.Open(nil, sealed[:12], sealed[12:], []byte(path))
	if err != nil {
		t.Error(path, err)
	}
	return open
}

// Checks the value under a path: its prefix, and the plaintext that another implementation
// decrypts with the key.
func (p etcdPart) checkSealed(path, prefix, content string, open func(*testing.T, []byte, string) []byte) {
	p.t.Helper()
	sealed, is := bytes.CutPrefix(p.value(path), []byte(prefix))
	if !is {
		p.t.Errorf("%s: %q", path, p.value(path))
	} else if !bytes.Contains(open(p.t, sealed, p.prefix+path), []byte(content)) {
		p.t.Errorf("%s: without %q", path, content)
	}
}

func createObject(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, namespace, object string) *unstructured.Unstructured {
	t.Helper()
	tree := &unstructured.Unstructured{}
	if err := tree.UnmarshalJSON([]byte(object)); err != nil {
		t.Fatal(err)
	}
	created, err := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace(namespace).Create(t.Context(), tree, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// Defines a resource with objects of any content, and waits for it.
func define(t *testing.T, config *rest.Config, plural, kind, group, scope string) schema.GroupVersionResource {
	t.Helper()
	definition := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[3]s"},
		"spec":{"group":"%[3]s","scope":"%[4]s","names":{"plural":"%[1]s","kind":"%[2]s"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, kind, group, scope)
	createObject(t, config, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", definition)
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	eventually(t, plural+" are served", func() bool {
		_, err := dynamic.NewForConfigOrDie(config).Resource(resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return resource
}

// Resources of all three servers that a kube-apiserver is made of.
const ofAllServers = "pods, configmaps, customresourcedefinitions.apiextensions.k8s.io, pandas.awesome.bears.com, apiservices.apiregistration.k8s.io"

func TestEncryptSupportedForAllResourceTypes(t *testing.T) {
	part := newEtcdPart(t)
	file := encryptionFile(t, encryptionOf([]string{ofAllServers, keyed("aescbc")}))
	config, _ := start(t, part.flags("--encryption-provider-config="+file, "--disable-admission-plugins=ServiceAccount")...)
	pandas := define(t, config, "pandas", "Panda", "awesome.bears.com", "Cluster")
	client := dynamic.NewForConfigOrDie(config)
	for _, row := range []struct {
		group, resource, namespace, object string
	}{
		{"", "configmaps", "default", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm1"}}`},
		{"apiextensions.k8s.io", "customresourcedefinitions", "", ""},
		{pandas.Group, pandas.Resource, "", `{"apiVersion":"awesome.bears.com/v1","kind":"Panda","metadata":{"name":"cr3panda"},"weight":100}`},
		{"apiregistration.k8s.io", "apiservices", "", `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"as2.foo.com"},
			"spec":{"group":"foo.com","version":"as2","groupPriorityMinimum":100,"versionPriority":10}}`},
		{"", "pods", "default", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod1"},"spec":{"containers":[{"name":"c","image":"i"}]}}`},
	} {
		resource := schema.GroupVersionResource{Group: row.group, Version: "v1", Resource: row.resource}
		name := "pandas.awesome.bears.com"
		if row.object != "" {
			name = createObject(t, config, resource, row.namespace, row.object).GetName()
		}
		if _, err := client.Resource(resource).Namespace(row.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		path := "/" + row.resource + "/" + filepath.Join(row.namespace, name)
		if row.group != "" {
			path = "/" + row.group + path
		}
		part.checkSealed(path, "k8s:enc:aescbc:v1:key1:", name, openCBC)
	}
}

func TestSecretsShouldBeTransformed(t *testing.T) {
	for method, open := range map[string]func(*testing.T, []byte, string) []byte{"aesgcm": openGCM, "aescbc": openCBC} {
		t.Run(method, func(t *testing.T) {
			part := newEtcdPart(t)
			config, _ := start(t, part.flags("--encryption-provider-config="+encryptionFile(t, encryptionOf([]string{"secrets", keyed(method)})))...)
			createSecret(t, config, "test-secret", "086a7ffc-0225-11e8-ba89-0ed5f89f718b")
			checkSecret(t, config, "test-secret", "086a7ffc-0225-11e8-ba89-0ed5f89f718b")
			part.checkSealed("/secrets/default/test-secret", "k8s:enc:"+method+":v1:key1:", "086a7ffc-0225-11e8-ba89-0ed5f89f718b", open)
		})
	}
}

// A listening plugin, and its provider in the configuration.
func listening(t *testing.T, name string) (*vault, string) {
	directory, err := os.MkdirTemp("", "kms") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	plugin := &vault{key: "1"}
	socket := filepath.Join(directory, "s")
	plugin.listen(t, socket)
	return plugin, fmt.Sprintf("kms: {apiVersion: v2, name: %s, endpoint: 'unix://%s'}", name, socket)
}

func TestEncryptAllWithWildcard(t *testing.T) {
	part := newEtcdPart(t)
	_, ofBatch := listening(t, "kms-provider")
	_, ofAll := listening(t, "encrypt-all-kms-provider")
	file := encryptionFile(t, encryptionOf([]string{"configmaps", "identity: {}"}, []string{"'*.batch'", ofBatch}, []string{"'*.*'", ofAll}))
	config, _ := start(t, part.flags("--encryption-provider-config="+file)...)
	template := `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"%s","containers":[{"name":"c","image":"i"}]}}`
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"test"},"spec":{` + fmt.Sprintf(template, "Never") + `}}`
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"test"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + fmt.Sprintf(template, "Always") + `}}`
	createObject(t, config, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "default", job)
	createObject(t, config, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "default", deployment)
	createSecret(t, config, "test", "value")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, prefix := range map[string]string{
		"/jobs/default/test":        "k8s:enc:kms:v2:kms-provider:",
		"/deployments/default/test": "k8s:enc:kms:v2:encrypt-all-kms-provider:",
		"/secrets/default/test":     "k8s:enc:kms:v2:encrypt-all-kms-provider:",
		"/configmaps/default/test":  "k8s\x00",
	} {
		if value := part.value(path); !bytes.HasPrefix(value, []byte(prefix)) {
			t.Errorf("%s: %q", path, value)
		}
	}
}

// Resources that no client can write are not encrypted, because a migration could not rewrite
// them.
var neverEncrypted = []string{"/masterleases/", "/peerserverleases/", "/ranges/"}

func TestEncryptAll(t *testing.T) {
	part := newEtcdPart(t)
	_, provider := listening(t, "encrypt-all-kms-provider")
	file := encryptionFile(t, encryptionOf([]string{"'*.*'", provider}))
	config, _ := start(t, part.flags("--encryption-provider-config="+file, "--runtime-config=api/all=true",
		"--feature-gates=AllBeta=true,ClusterTrustBundle=true,GenericWorkload=true,PodCertificateRequest=true,StorageVersionMigrator=true")...)
	pandas := define(t, config, "pandas", "Panda", "awesome.bears.com", "Cluster")
	createObject(t, config, pandas, "", `{"apiVersion":"awesome.bears.com/v1","kind":"Panda","metadata":{"name":"a"}}`)
	collections := createOneOfEach(t, config)
	found := map[string]bool{}
	for path, value := range part.values("/") {
		isRest := true
		for _, never := range neverEncrypted {
			isRest = isRest && !strings.HasPrefix(path, never)
		}
		if bytes.HasPrefix(value, []byte("k8s:enc:")) != isRest || isRest && !bytes.HasPrefix(value, []byte("k8s:enc:kms:v2:encrypt-all-kms-provider:")) {
			t.Errorf("%s: %q", path, value[:min(len(value), 40)])
		}
		for _, part := range strings.Split(path, "/") {
			found[part] = true
		}
	}
	for _, plural := range collections {
		if !found[plural] {
			t.Errorf("there is nothing of %s in etcd", plural)
		}
	}
}

// Resources whose keys in etcd have another name.
var storedAs = map[string]string{"nodes": "minions", "replicationcontrollers": "controllers", "ingresses": "ingress"}

// Creates a small object of each kind that scripts/ knows, and returns their resources.
func createOneOfEach(t *testing.T, config *rest.Config) (plurals []string) {
	text, err := os.ReadFile("../../apiscript/differ/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{
		"$ns": "default", "$unique": "one.io", "${net}": "10.9.8", "$csr": newSigningRequest(t),
	} {
		text = bytes.ReplaceAll(text, []byte(variable), []byte(value))
	}
	var kinds []struct {
		Kind, Plural string
		Cluster      bool
		Small        map[string]any
	}
	if err := yaml.Unmarshal(text, &kinds); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		version, name, _ := strings.Cut(kind.Kind, " ")
		groupVersion, err := schema.ParseGroupVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: kind.Small}
		object.SetAPIVersion(version)
		object.SetKind(name)
		if object.GetName() == "" {
			object.SetName("one")
		}
		namespace := "default"
		if kind.Cluster {
			namespace = ""
		}
		resource := dynamic.NewForConfigOrDie(config).Resource(groupVersion.WithResource(kind.Plural)).Namespace(namespace)
		if _, err := resource.Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: %v", kind.Kind, err) // some are served in two groups
		}
		if stored, is := storedAs[kind.Plural]; is {
			kind.Plural = stored
		}
		plurals = append(plurals, kind.Plural)
	}
	return plurals
}

// A certificate signing request in PEM, base64-encoded.
func newSigningRequest(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
}
