package clients

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// client has the methods that the typed clients of all kinds share.
type client[T any, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

type object interface {
	metav1.Object
	runtime.Object
}

// life creates, changes and deletes one object, and checks a watcher's events.
func life[T object, L runtime.Object](t *testing.T, kind string, client client[T, L], object T) {
	t.Run(kind, func(t *testing.T) {
		ctx, name := t.Context(), unique("a")
		object.SetName(name)
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		list, err := client.List(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		one.ResourceVersion = any(list).(metav1.ListInterface).GetResourceVersion()
		events, err := client.Watch(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		defer events.Stop()

		created, err := client.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if created.GetUID() == "" || created.GetResourceVersion() == "" {
			t.Errorf("created: %v", created)
		}
		var updated T
		// A controller may have written the object: a quota's status follows its creation.
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			got, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			got.SetLabels(map[string]string{"l": "m"})
			updated, err = client.Update(ctx, got, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if updated.GetLabels()["l"] != "m" || updated.GetUID() != created.GetUID() {
			t.Errorf("updated: %v", updated)
		}
		patch := []byte(`{"metadata":{"annotations":{"a":"b"}}}`)
		for _, patchType := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
			patched, err := client.Patch(ctx, name, patchType, patch, metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if patched.GetAnnotations()["a"] != "b" {
				t.Errorf("patched: %v", patched)
			}
		}
		now := int64(0)
		if err := client.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		for _, expected := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
			event := <-events.ResultChan()
			for event.Type == watch.Modified && expected == watch.Deleted {
				event = <-events.ResultChan() // kinds with finalizers are marked first
			}
			seen, ok := event.Object.(T)
			if event.Type != expected || !ok || seen.GetName() != name {
				t.Errorf("expected %s, got %v", expected, event)
			}
		}
	})
}

func TestTypedClients(t *testing.T) {
	config := config(t)
	answers := record(config)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, c)
	labels := map[string]string{"app": "a"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	job := template
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	class := "manual"
	one := intstr.FromInt32(1)

	core, apps, batch := c.CoreV1(), c.AppsV1(), c.BatchV1()
	life(t, "ConfigMap", core.ConfigMaps(ns), &corev1.ConfigMap{Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0, 1}}})
	life(t, "Secret", core.Secrets(ns), &corev1.Secret{StringData: map[string]string{"k": "v"}})
	life(t, "Pod", core.Pods(ns), &corev1.Pod{Spec: template.Spec})
	life(t, "Service", core.Services(ns), &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}})
	life(t, "ServiceAccount", core.ServiceAccounts(ns), &corev1.ServiceAccount{})
	life(t, "ReplicationController", core.ReplicationControllers(ns), &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Selector: labels, Template: &template}})
	life(t, "LimitRange", core.LimitRanges(ns), &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer}}}})
	life(t, "ResourceQuota", core.ResourceQuotas(ns), &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("10")}}})
	life(t, "Node", core.Nodes(), &corev1.Node{})
	life(t, "Namespace", core.Namespaces(), &corev1.Namespace{})
	life(t, "PersistentVolumeClaim", core.PersistentVolumeClaims(ns), &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}})
	life(t, "Deployment", apps.Deployments(ns), &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}})
	life(t, "ReplicaSet", apps.ReplicaSets(ns), &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}})
	life(t, "StatefulSet", apps.StatefulSets(ns), &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, ServiceName: "a"}})
	life(t, "DaemonSet", apps.DaemonSets(ns), &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}})
	life(t, "Job", batch.Jobs(ns), &batchv1.Job{Spec: batchv1.JobSpec{Template: job}})
	life(t, "CronJob", batch.CronJobs(ns), &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "0 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}}}})
	life(t, "HorizontalPodAutoscaler v2", c.AutoscalingV2().HorizontalPodAutoscalers(ns), &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "a", APIVersion: "apps/v1"}, MaxReplicas: 3,
	}})
	life(t, "HorizontalPodAutoscaler v1", c.AutoscalingV1().HorizontalPodAutoscalers(ns), &autoscalingv1.HorizontalPodAutoscaler{Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "a", APIVersion: "apps/v1"}, MaxReplicas: 3,
	}})
	life(t, "Ingress", c.NetworkingV1().Ingresses(ns), &networkingv1.Ingress{Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}},
	}})
	life(t, "NetworkPolicy", c.NetworkingV1().NetworkPolicies(ns), &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}})
	life(t, "PodDisruptionBudget", c.PolicyV1().PodDisruptionBudgets(ns), &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: selector}})
	rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	life(t, "Role", c.RbacV1().Roles(ns), &rbacv1.Role{Rules: []rbacv1.PolicyRule{rule}})
	life(t, "RoleBinding", c.RbacV1().RoleBindings(ns), &rbacv1.RoleBinding{
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u", APIGroup: rbacv1.GroupName}},
	})
	life(t, "ClusterRole", c.RbacV1().ClusterRoles(), &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{rule}})
	life(t, "StorageClass", c.StorageV1().StorageClasses(), &storagev1.StorageClass{Provisioner: "p.example.com/a"})
	life(t, "PriorityClass", c.SchedulingV1().PriorityClasses(), &schedulingv1.PriorityClass{Value: 7})
	life(t, "Lease", c.CoordinationV1().Leases(ns), &coordinationv1.Lease{})
	life(t, "EndpointSlice", c.DiscoveryV1().EndpointSlices(ns), &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4})

	for _, url := range []string{"/pods", "/deployments", "watch=true"} {
		if !answers.any(url, protobuf) || answers.any(url, "application/json") {
			t.Errorf("not all answers about %s were in Protobuf", url)
		}
	}
}
