package clients

import (
	"testing"

	appsv1beta1 "k8s.io/api/apps/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	extensions "k8s.io/api/extensions/v1beta1"
	policy "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
)

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

func deployment(name string) *extensions.Deployment {
	return &extensions.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       extensions.DeploymentSpec{Template: template()},
	}
}

func TestInformers(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			c := start(t, encoding)
			_, err := c.createDeployment(deployment("a"))
			must(t, err)
			factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(c.namespace))
			own := factory.Extensions().V1beta1().Deployments()
			deployments := watched(own.Informer())
			apps := watched(factory.Apps().V1beta1().Deployments().Informer())
			ingresses := watched(factory.Extensions().V1beta1().Ingresses().Informer())
			stop := make(chan struct{})
			defer close(stop)
			factory.Start(stop)
			for kind, synced := range factory.WaitForCacheSync(stop) {
				if !synced {
					t.Fatalf("the informer of %v has not everything", kind)
				}
			}
			eventually(t, "both versions have the deployment", func() bool {
				return deployments.is(1, 0, 0)() && apps.is(1, 0, 0)()
			})
			_, err = c.createDeployment(deployment("b"))
			must(t, err)
			_, err = c.patchDeployment("b", `{"spec":{"replicas":3}}`)
			must(t, err)
			must(t, c.deleteDeployment("a"))
			_, err = c.createIngress(ingress())
			must(t, err)
			eventually(t, "all changes in extensions", deployments.is(2, 1, 1))
			eventually(t, "all changes in apps", apps.is(2, 1, 1))
			eventually(t, "the ingress", ingresses.is(1, 0, 0))
			b, err := own.Lister().Deployments(c.namespace).Get("b")
			must(t, err)
			if *b.Spec.Replicas != 3 {
				t.Errorf("the informer has %d replicas", *b.Spec.Replicas)
			}
		})
	}
}

func ingress() *extensions.Ingress {
	backend := extensions.IngressBackend{ServiceName: "web", ServicePort: intstr.FromString("http")}
	return &extensions.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       extensions.IngressSpec{Backend: &backend},
	}
}

func TestDeployments(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			c := start(t, encoding)
			events, err := c.watchDeployments()
			must(t, err)
			defer events.Stop()
			made, err := c.createDeployment(deployment("web"))
			must(t, err)
			// The defaults of extensions/v1beta1, with the selector of the template's labels.
			spec := made.Spec
			if *spec.Replicas != 1 || spec.Selector.MatchLabels["app"] != "web" || spec.Strategy.RollingUpdate.MaxSurge.IntVal != 1 {
				t.Errorf("defaults: %+v", spec)
			}
			if event := <-events.ResultChan(); event.Type != watch.Added || event.Object.(*extensions.Deployment).Name != "web" {
				t.Errorf("the watch sent %+v", event)
			}
			made.Spec.Paused = true
			made, err = c.updateDeployment(made)
			must(t, err)
			stale := made.DeepCopy()
			stale.ResourceVersion = "1"
			if _, err = c.updateDeployment(stale); !errors.IsConflict(err) {
				t.Errorf("an update of an old state: %v", err)
			}
			scale, err := c.getScale("web")
			must(t, err)
			scale.Spec.Replicas = 4
			scale, err = c.updateScale("web", scale)
			must(t, err)
			if scale.Spec.Replicas != 4 || scale.Status.Selector["app"] != "web" {
				t.Errorf("the scale: %+v", scale)
			}
			must(t, c.rollBack(&extensions.DeploymentRollback{Name: "web", RollbackTo: extensions.RollbackConfig{Revision: 2}}))
			made, err = c.getDeployment("web")
			must(t, err)
			if !made.Spec.Paused || *made.Spec.Replicas != 4 || made.Spec.RollbackTo.Revision != 2 {
				t.Errorf("the deployment: %+v", made.Spec)
			}
			other, err := c.getAppsDeployment("web")
			must(t, err)
			if other.UID != made.UID || *other.Spec.Replicas != 4 {
				t.Errorf("in apps/v1beta1: %+v", other)
			}
			must(t, c.deleteDeployment("web"))
			if _, err = c.getDeployment("web"); !errors.IsNotFound(err) {
				t.Errorf("after the deletion: %v", err)
			}
		})
	}
}

func TestOtherKinds(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			c := start(t, encoding)
			set, err := c.createStatefulSet(&appsv1beta1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Name: "db"},
				Spec:       appsv1beta1.StatefulSetSpec{ServiceName: "db", Template: template()},
			})
			must(t, err)
			if set.Spec.UpdateStrategy.Type != appsv1beta1.OnDeleteStatefulSetStrategyType {
				t.Errorf("the stateful set: %+v", set.Spec.UpdateStrategy)
			}
			made, err := c.createIngress(ingress())
			must(t, err)
			if made.Spec.Backend.ServicePort.StrVal != "http" {
				t.Errorf("the ingress: %+v", made.Spec)
			}
			job := batchv1.JobSpec{Template: template()}
			job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			cron, err := c.createCronJob(&batchv1beta1.CronJob{
				ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
				Spec:       batchv1beta1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1beta1.JobTemplateSpec{Spec: job}},
			})
			must(t, err)
			if cron.Spec.ConcurrencyPolicy != batchv1beta1.AllowConcurrent {
				t.Errorf("the cron job: %+v", cron.Spec)
			}
		})
	}
}

func TestEvictions(t *testing.T) {
	c := start(t, encodings[0])
	one := intstr.FromInt(1)
	_, err := c.createBudget(&policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec:       policy.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	must(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: template().Spec}
	must(t, c.createPod(pod)) // not selected
	must(t, c.evict(&policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: c.namespace}}))
}
