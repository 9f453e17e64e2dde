package clients

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The test of test/integration/auth/resourceclaim_test.go with the same name.
func TestResourceClaimGranularStatusAuthorization(t *testing.T) {
	testClaims(t, serve(t, "--authorization-mode=RBAC"), true)
	// Without the gate, the permission to update the status is enough.
	testClaims(t, serve(t, "--authorization-mode=RBAC", "--feature-gates=DRAResourceClaimGranularStatusAuthorization=false"), false)
}

func testClaims(t *testing.T, config *rest.Config, isGranular bool) {
	const account, node = "system:serviceaccount:default:dra-plugin-sa", "worker-1"
	device := func(name string) resourcev1.AllocatedDeviceStatus {
		return resourcev1.AllocatedDeviceStatus{Driver: "test-driver", Pool: "pool1", Device: name}
	}
	withDevice := func(claim *resourcev1.ResourceClaim) {
		claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{device("dev1")}
	}
	// Pintle says first what nobody may change.
	const immutable = "field is immutable"
	const binding, devices = "Forbidden: changing status.allocation or status.reservedFor requires", "Forbidden: changing status.devices requires"
	for name, row := range map[string]struct {
		node             string
		verb, subsidiary string
		change           func(*resourcev1.ResourceClaim)
		refusal          string
	}{
		"fails to update status.devices without driver permission":    {"", "", "", withDevice, devices + ` resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "test-driver" is forbidden: User "` + account + `" cannot arbitrary-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"`},
		"fails on the same node without any permission":               {node, "", "", withDevice, devices + ` resource="resourceclaims/driver", verb="[associated-node:update arbitrary-node:update]" permission: `},
		"fails with associated-node permission for another node's SA": {"worker-2", "associated-node:update", "driver", withDevice, devices},
		"succeeds with associated-node permission for same-node SA":   {node, "associated-node:update", "driver", withDevice, ""},
		"succeeds with arbitrary-node permission":                     {"", "arbitrary-node:update", "driver", withDevice, ""},
		"fails deallocation without binding permission":               {"", "", "", func(claim *resourcev1.ResourceClaim) { claim.Status.Allocation = nil }, binding},
		"succeeds to update status.reservedFor with binding permission": {"", "update", "binding", func(claim *resourcev1.ResourceClaim) {
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod-1", UID: "uid-1"}}
		}, ""},
		"fails when updating both allocation and devices but missing binding permission": {"", "arbitrary-node:update", "driver", func(claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{"worker-2"}
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{device("dev2")}
		}, immutable},
		"succeeds without a change": {"", "", "", func(*resourcev1.ResourceClaim) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			admin, name := kubernetes.NewForConfigOrDie(config).ResourceV1().ResourceClaims("default"), unique("claim")
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "req-1", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "subreq-1", DeviceClassName: "test-class"}}}}}}}
			claim, err := admin.Create(t.Context(), claim, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			claim.Status.Allocation = &resourcev1.AllocationResult{
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}},
				Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "req-1", Driver: "test-driver", Pool: "pool1", Device: "dev1"}}},
			}
			if claim, err = admin.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			grantRules(t, config, account, rbacv1.PolicyRule{Verbs: []string{"update", "patch"}, APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/status"}})
			if row.verb != "" {
				grantRules(t, config, account, rbacv1.PolicyRule{Verbs: []string{row.verb}, APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/" + row.subsidiary}})
			}
			writer := rest.CopyConfig(config)
			writer.Impersonate = rest.ImpersonationConfig{UserName: account}
			if row.node != "" {
				writer.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {row.node}}
			}
			row.change(claim)
			_, err = kubernetes.NewForConfigOrDie(writer).ResourceV1().ResourceClaims("default").UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
			if row.refusal == "" || !isGranular && row.refusal != immutable {
				if err != nil {
					t.Error(err)
				}
			} else if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), row.refusal) {
				t.Errorf("%v, not %s", err, row.refusal)
			}
		})
	}
}
