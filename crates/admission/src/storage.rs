//! Protection of storage objects and pod groups in use, and expansion of claims (upstream:
//! `StorageObjectInUseProtection`, `PodGroupProtection`, `PersistentVolumeClaimResize`).

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::Value;

use crate::{creates, find, forbidden, is_of, pod_groups};

/// The group and name of a resource whose objects get a finalizer, and the finalizer.
type Protected = (&'static str, &'static str, &'static str);

const STORAGE: &[Protected] = &[
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

const POD_GROUPS: &[Protected] =
    &[(pod_groups::GROUP, "podgroups", "scheduling.k8s.io/podgroup-protection")];

/// A plugin that adds a finalizer to new objects; controllers remove it when the object is no
/// longer used.
pub(crate) struct InUseProtection(&'static [Protected]);

/// `StorageObjectInUseProtection`
pub(crate) const STORAGE_PROTECTION: InUseProtection = InUseProtection(STORAGE);
/// `PodGroupProtection`
pub(crate) const POD_GROUP_PROTECTION: InUseProtection = InUseProtection(POD_GROUPS);

impl Admission for InUseProtection {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(&self, write: &Attributes<'_>, new: &mut Value, _: &Registry) -> Result<(), Status> {
        let protected = self.0.iter().find(|(group, resource, _)| creates(write, group, resource));
        let Some((_, _, finalizer)) = protected else { return Ok(()) };
        if object::finalizers(new).any(|present| present == *finalizer) {
            return Ok(());
        }
        let metadata = object::metadata_mut(new);
        let finalizers = metadata.entry_or("finalizers", || Vec::<Value>::new().into());
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.push((*finalizer).into());
        }
        Ok(())
    }
}

/// The plugin that allows larger claims only if their StorageClass allows expansion.
pub(crate) struct ClaimResize;

impl Admission for ClaimResize {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let is_claim_update =
            is_of(write, "", "persistentvolumeclaims") && write.operation == Operation::Update;
        let objects = write.object.filter(|_| is_claim_update);
        let objects = objects.and_then(|new| Some((new, write.old()?)));
        let Some((new, old)) = objects else { return Ok(()) };
        if size(new) <= size(old) {
            return Ok(());
        }
        if old.str_at(&["status", "phase"]) != Some("Bound") {
            let why = "Only bound persistent volume claims can be expanded";
            return Err(forbidden(write, new, why));
        }
        if !can_grow(new, old, registry) {
            let why = "only dynamically provisioned pvc can be resized and the storageclass that \
                       provisions the pvc must support resize";
            return Err(forbidden(write, new, why));
        }
        Ok(())
    }
}

fn size(claim: &Value) -> Option<pintle_meta::Quantity> {
    claim.str_at(&["spec", "resources", "requests", "storage"])?.parse().ok()
}

/// Whether the StorageClass of a claim allows expansion and the update does not change the claim's
/// class.
fn can_grow(new: &Value, old: &Value, registry: &Registry) -> bool {
    let (class, before) = (class(new), class(old));
    if class.is_empty() || class != before {
        return false;
    }
    let class = find(registry, ("storage.k8s.io", "storageclasses"), "", class);
    // A class that cannot be read does not allow expansion.
    class
        .ok()
        .flatten()
        .is_some_and(|c| c.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true))
}

fn class(claim: &Value) -> &str {
    let annotation = "volume.beta.kubernetes.io/storage-class";
    let annotated =
        object::annotations(claim).and_then(|a| a.get(annotation)).and_then(Value::as_str);
    annotated.or_else(|| claim.str_at(&["spec", "storageClassName"])).unwrap_or_default()
}
