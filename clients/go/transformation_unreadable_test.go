package clients

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The tests of this file are those of test/integration/controlplane/transformation with the same
// names. Pintle's errors about unreadable objects have other words.

var (
	secretsOfV1 = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	foos        = schema.GroupVersionResource{Group: "cr.bar.com", Version: "v1", Resource: "foos"}
)

// An object of a resource.
func named(resource schema.GroupVersionResource, name string, finalizers ...string) *unstructured.Unstructured {
	kind := map[string]string{"secrets": "Secret", "foos": "Foo"}[resource.Resource]
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetName(name)
	object.SetFinalizers(finalizers)
	return object
}

// Allows a user these verbs on a resource in the default namespace.
func allow(t *testing.T, config *rest.Config, user string, resource schema.GroupVersionResource, verbs ...string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	meta := metav1.ObjectMeta{Name: unique("role")}
	rules := []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}}}
	if _, err := client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The ways in which a stored object becomes unreadable.
type breaking struct {
	provider string
	with     func(part etcdPart, path string)
}

// Upstream removes the key from the configuration. Pintle continues to serve values that it has
// read, so the stored value gets the prefix of another provider instead.
func ofOtherProvider(part etcdPart, path string) {
	value := part.value(path)
	part.put(path, bytes.Replace(value, []byte(":aesgcm:"), []byte(":aescbc:"), 1))
}

func bitFlipped(part etcdPart, path string) {
	value := part.value(path)
	value[len(value)-1] ^= 0xff
	part.put(path, value)
}

func cutShort(part etcdPart, path string) {
	value := part.value(path)
	part.put(path, value[:len(value)-1])
}

func startWithUnreadable(t *testing.T, provider string, gate bool) (etcdPart, *rest.Config) {
	part := newEtcdPart(t)
	file := encryptionFile(t, encryptionOf([]string{"secrets, foos.cr.bar.com", provider}))
	config, _ := start(t, part.flags("--encryption-provider-config="+file,
		fmt.Sprintf("--feature-gates=AllowUnsafeMalformedObjectDeletion=%v", gate))...)
	return part, config
}

func pathOf(resource schema.GroupVersionResource, name string) string {
	if resource.Group == "" {
		return "/" + resource.Resource + "/default/" + name
	}
	return "/" + resource.Group + "/" + resource.Resource + "/default/" + name
}

func TestAllowUnsafeMalformedObjectDeletionFeature(t *testing.T) {
	testUnsafeDeletion(t, secretsOfV1, breaking{keyed("aesgcm"), ofOtherProvider})
}

func TestCRAllowUnsafeMalformedObjectDeletionFeature(t *testing.T) {
	testUnsafeDeletion(t, foos, breaking{keyed("aesgcm"), ofOtherProvider})
}

func TestBitFlipCorruptObjectDeletion(t *testing.T) {
	testUnsafeDeletion(t, secretsOfV1, breaking{"identity: {}", bitFlipped})
}

func testUnsafeDeletion(t *testing.T, resource schema.GroupVersionResource, breaking breaking) {
	for _, gate := range []bool{true, false} {
		t.Run(fmt.Sprintf("AllowUnsafeMalformedObjectDeletion=%v", gate), func(t *testing.T) {
			t.Parallel()
			unsafelyDelete(t, resource, breaking, gate)
		})
	}
}

func unsafelyDelete(t *testing.T, resource schema.GroupVersionResource, breaking breaking, gate bool) {
	part, config := startWithUnreadable(t, breaking.provider, gate)
	if resource == foos {
		define(t, config, "foos", "Foo", foos.Group, "Namespaced")
	}
	ctx, others := t.Context(), rest.CopyConfig(config)
	others.Impersonate.UserName = "croc"
	objects := dynamic.NewForConfigOrDie(others).Resource(resource).Namespace("default")
	create := func(name string, finalizers ...string) {
		t.Helper()
		if _, err := objects.Create(ctx, named(resource, name, finalizers...), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allow(t, config, "croc", resource, "create", "get", "delete", "update")
	eventually(t, "the user may", func() bool {
		_, err := objects.Get(ctx, "none", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	create("broken", "test.k8s.io/fake")
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, "default", nil)
	informer := factory.ForResource(resource)
	lister := informer.Lister().ByNamespace("default")
	_ = informer.Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		t.Fatal("the informer has no list")
	}

	breaking.with(part, pathOf(resource, "broken"))
	eventually(t, "the object cannot be read", func() bool {
		_, err := objects.Get(ctx, "broken", metav1.GetOptions{})
		if breaking.provider == "identity: {}" || err == nil {
			return apierrors.IsInternalError(err)
		}
		return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "no matching prefix found")
	})
	create("sound")
	if err := objects.Delete(ctx, "sound", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := lister.Get("broken"); err != nil {
		t.Error("informers keep what they have", err)
	}
	told(t, "deleted as ever", objects.Delete(ctx, "broken", metav1.DeleteOptions{}), apierrors.IsInternalError)
	always := true
	unsafely := metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &always}
	err := objects.Delete(ctx, "broken", unsafely)
	if gate {
		if told(t, "without the permission", err, apierrors.IsForbidden); !strings.Contains(err.Error(), `not permitted to do "unsafe-delete-ignore-read-errors"`) {
			t.Error(err)
		}
	} else {
		told(t, "the option changes nothing", err, apierrors.IsInternalError)
	}
	allow(t, config, "croc", resource, "unsafe-delete-ignore-read-errors")
	if !gate {
		told(t, "the permission changes nothing", objects.Delete(ctx, "broken", unsafely), apierrors.IsInternalError)
		_, err = objects.Get(ctx, "broken", metav1.GetOptions{})
		told(t, "the object is there", err, apierrors.IsInternalError)
		return
	}
	eventually(t, "it is deleted unsafely", func() bool { return objects.Delete(ctx, "broken", unsafely) == nil })
	_, err = objects.Get(ctx, "broken", metav1.GetOptions{})
	told(t, "it is gone", err, apierrors.IsNotFound)
	create("final")
	eventually(t, "the informer goes on", func() bool {
		_, err := lister.Get("final")
		return err == nil
	})
	_, err = lister.Get("broken")
	told(t, "the informer knows that it is gone", err, apierrors.IsNotFound)
}

func TestListCorruptObjects(t *testing.T) { testListUnreadable(t, secretsOfV1) }

func TestCRListCorruptObjects(t *testing.T) { testListUnreadable(t, foos) }

func testListUnreadable(t *testing.T, resource schema.GroupVersionResource) {
	for _, gate := range []bool{true, false} {
		t.Run(fmt.Sprintf("AllowUnsafeMalformedObjectDeletion=%v", gate), func(t *testing.T) {
			part, config := startWithUnreadable(t, keyed("aesgcm"), gate)
			if resource == foos {
				define(t, config, "foos", "Foo", foos.Group, "Namespaced")
			}
			ctx, objects := t.Context(), dynamic.NewForConfigOrDie(config).Resource(resource).Namespace("default")
			names := []string{"corrupt-a", "corrupt-b", "corrupt-c"}
			for _, name := range names {
				if _, err := objects.Create(ctx, named(resource, name), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range names {
				cutShort(part, pathOf(resource, name))
			}
			for _, name := range names {
				eventually(t, "the object cannot be read", func() bool {
					_, err := objects.Get(ctx, name, metav1.GetOptions{})
					return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "cipher: message authentication failed")
				})
			}
			_, err := objects.List(ctx, metav1.ListOptions{})
			if !gate {
				told(t, "a list", err, apierrors.IsInternalError)
				return
			}
			var failure apierrors.APIStatus
			if !errors.As(err, &failure) || failure.Status().Reason != metav1.StatusReasonStoreReadError || failure.Status().Code != 500 ||
				failure.Status().Message != "failed to read one or more "+resource.GroupResource().String()+" from the storage" {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, cause := range failure.Status().Details.Causes {
				if cause.Type != metav1.CauseTypeUnexpectedServerResponse {
					t.Errorf("%+v", cause)
				}
				found[cause.Field[strings.LastIndex(cause.Field, "/")+1:]] = true
			}
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, names) {
				t.Errorf("%v", failure.Status().Details)
			}
		})
	}
}

// A stored value is decrypted only under its own key: a moved value, a truncated one, and one with
// another provider's prefix are errors.
func TestValuesThatWereMoved(t *testing.T) {
	for method, refuses := range map[string]bool{"aescbc": false, "aesgcm": true, "secretbox": false, "kms": true} {
		t.Run(method, func(t *testing.T) {
			part := newEtcdPart(t)
			_, provider := listening(t, "key1")
			if method != "kms" {
				provider = strings.ReplaceAll(keyed(method), transformationKey, "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
			}
			config, _ := part.serveWith("secrets", provider)
			for _, name := range []string{"one", "two", "three", "cut", "renamed"} {
				createSecret(t, config, name, "value-of-"+name)
			}
			client := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default")
			read := func(name string) (string, error) {
				secret, err := client.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return "", err
				}
				return string(secret.Data["a"]), nil
			}
			check := func(what, name string) {
				t.Helper()
				eventually(t, what, func() bool {
					_, err := read(name)
					return apierrors.IsInternalError(err)
				})
				if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsInternalError(err) {
					t.Error(what, err)
				}
				_, err := client.Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
				told(t, what, err, apierrors.IsInternalError)
			}
			stored := part.value("/secrets/default/one")
			part.put("/secrets/default/two", stored)
			if refuses {
				check("a value of another key", "two")
			} else {
				// As in upstream, aescbc and secretbox do not bind a value to its key.
				eventually(t, "the value of another key is read", func() bool {
					value, err := read("two")
					return err == nil && value == "value-of-one"
				})
			}
			whole := part.value("/secrets/default/cut")
			prefix := strings.LastIndex(string(whole[:40]), ":") + 1
			for _, size := range []int{0, 1, 7, 8, prefix - 1, prefix, prefix + 1, prefix + 16, len(whole) - 17, len(whole) - 1} {
				part.put("/secrets/default/cut", whole[:size])
				check(fmt.Sprintf("a value of %d bytes of %d", size, len(whole)), "cut")
				part.put("/secrets/default/cut", whole)
				eventually(t, "the whole value is read again", func() bool {
					value, err := read("cut")
					return err == nil && value == "value-of-cut"
				})
			}
			renamed := strings.Replace(string(part.value("/secrets/default/renamed")), ":key1:", ":key2:", 1)
			part.put("/secrets/default/renamed", []byte(renamed))
			check("a value of a provider that is not there", "renamed")
			if value, err := read("three"); err != nil || value != "value-of-three" {
				t.Error(value, err)
			}
		})
	}
}
