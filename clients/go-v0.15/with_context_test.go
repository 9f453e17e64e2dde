//go:build context

package clients

import (
	"context"

	appsv1beta1 "k8s.io/api/apps/v1beta1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	extensions "k8s.io/api/extensions/v1beta1"
	policy "k8s.io/api/policy/v1beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// The calls of client-go since v0.18.

func (c calls) createNamespace(n *corev1.Namespace) (*corev1.Namespace, error) {
	return c.CoreV1().Namespaces().Create(context.TODO(), n, metav1.CreateOptions{})
}

func (c calls) createPod(p *corev1.Pod) error {
	_, err := c.CoreV1().Pods(c.namespace).Create(context.TODO(), p, metav1.CreateOptions{})
	return err
}

func (c calls) createDeployment(d *extensions.Deployment) (*extensions.Deployment, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Create(context.TODO(), d, metav1.CreateOptions{})
}

func (c calls) getDeployment(name string) (*extensions.Deployment, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Get(context.TODO(), name, metav1.GetOptions{})
}

func (c calls) updateDeployment(d *extensions.Deployment) (*extensions.Deployment, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Update(context.TODO(), d, metav1.UpdateOptions{})
}

func (c calls) patchDeployment(name string, patch string) (*extensions.Deployment, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Patch(context.TODO(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
}

func (c calls) deleteDeployment(name string) error {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Delete(context.TODO(), name, metav1.DeleteOptions{})
}

func (c calls) watchDeployments() (watch.Interface, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Watch(context.TODO(), metav1.ListOptions{})
}

func (c calls) getScale(name string) (*extensions.Scale, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).GetScale(context.TODO(), name, metav1.GetOptions{})
}

func (c calls) updateScale(name string, s *extensions.Scale) (*extensions.Scale, error) {
	return c.ExtensionsV1beta1().Deployments(c.namespace).UpdateScale(context.TODO(), name, s, metav1.UpdateOptions{})
}

func (c calls) rollBack(r *extensions.DeploymentRollback) error {
	return c.ExtensionsV1beta1().Deployments(c.namespace).Rollback(context.TODO(), r, metav1.CreateOptions{})
}

func (c calls) createIngress(i *extensions.Ingress) (*extensions.Ingress, error) {
	return c.ExtensionsV1beta1().Ingresses(c.namespace).Create(context.TODO(), i, metav1.CreateOptions{})
}

func (c calls) createStatefulSet(s *appsv1beta1.StatefulSet) (*appsv1beta1.StatefulSet, error) {
	return c.AppsV1beta1().StatefulSets(c.namespace).Create(context.TODO(), s, metav1.CreateOptions{})
}

func (c calls) getAppsDeployment(name string) (*appsv1beta1.Deployment, error) {
	return c.AppsV1beta1().Deployments(c.namespace).Get(context.TODO(), name, metav1.GetOptions{})
}

func (c calls) createCronJob(j *batchv1beta1.CronJob) (*batchv1beta1.CronJob, error) {
	return c.BatchV1beta1().CronJobs(c.namespace).Create(context.TODO(), j, metav1.CreateOptions{})
}

func (c calls) createBudget(b *policy.PodDisruptionBudget) (*policy.PodDisruptionBudget, error) {
	return c.PolicyV1beta1().PodDisruptionBudgets(c.namespace).Create(context.TODO(), b, metav1.CreateOptions{})
}

func (c calls) evict(e *policy.Eviction) error {
	return c.PolicyV1beta1().Evictions(c.namespace).Evict(context.TODO(), e)
}

func createDefinition(c definitions.Interface, d *apiextensions.CustomResourceDefinition) error {
	_, err := c.ApiextensionsV1beta1().CustomResourceDefinitions().Create(context.TODO(), d, metav1.CreateOptions{})
	return err
}

func getDefinition(c definitions.Interface, name string) (*apiextensions.CustomResourceDefinition, error) {
	return c.ApiextensionsV1beta1().CustomResourceDefinitions().Get(context.TODO(), name, metav1.GetOptions{})
}

func createCustom(c dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.Create(context.TODO(), u, metav1.CreateOptions{})
}
