package clients

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

func TestFailuresHaveReasonsAndCauses(t *testing.T) {
	c, err := kubernetes.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	maps, ctx := c.CoreV1().ConfigMaps(namespace(t, c)), t.Context()
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = maps.Get(ctx, "nobody", metav1.GetOptions{})
	told(t, "absent", err, apierrors.IsNotFound)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	told(t, "there already", err, apierrors.IsAlreadyExists)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "A!"}}, metav1.CreateOptions{})
	told(t, "invalid", err, apierrors.IsInvalid)
	if status := err.(apierrors.APIStatus).Status(); len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "metadata.name" {
		t.Errorf("%v", status)
	}
	stale := made.DeepCopy()
	made.Data = map[string]string{"k": "v"}
	if _, err = maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	stale.Data = map[string]string{"k": "w"}
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	told(t, "stale", err, apierrors.IsConflict)
	_, err = maps.List(ctx, metav1.ListOptions{LabelSelector: "a in"})
	told(t, "no selector", err, apierrors.IsBadRequest)
	err = c.PolicyV1().Evictions("nobody").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err == nil {
		t.Error("what is not there cannot be evicted")
	}

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := maps.Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Labels = map[string]string{"l": "m"}
		_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func told(t *testing.T, what string, err error, is func(error) bool) {
	t.Helper()
	if !is(err) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestListsArePaged(t *testing.T) {
	c, err := kubernetes.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	maps, ctx := c.CoreV1().ConfigMaps(namespace(t, c)), t.Context()
	for n := range 25 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%02d", n)}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	}))
	pages.PageSize = 10
	var names []string
	err = pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: notTheirs}, func(object runtime.Object) error {
		names = append(names, object.(*corev1.ConfigMap).Name)
		return nil
	})
	if err != nil || len(names) != 25 || names[0] != "a00" || names[24] != "a24" {
		t.Errorf("%v %v", names, err)
	}
}
