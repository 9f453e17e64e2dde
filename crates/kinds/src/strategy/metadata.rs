//! What strategies say about the metadata of updates: how a kind validates it, and what a write to
//! a subresource keeps of it.

use pintle_registry::{Members, MetadataChecks};
use pintle_value::Value;

/// The kind compares the metadata with the stored, and then validates the whole object like a new
/// one: most kinds.
pub(crate) const AS_UPDATE_AND_NEW: MetadataChecks =
    MetadataChecks { as_update: 1, as_new: 1, qualified_finalizers: true };

/// The kind only compares the metadata with the stored.
pub(crate) const AS_UPDATE: MetadataChecks = MetadataChecks { as_new: 0, ..AS_UPDATE_AND_NEW };

/// The kind only validates the metadata like that of a new object.
pub(crate) const AS_NEW: MetadataChecks = MetadataChecks { as_update: 0, ..AS_UPDATE_AND_NEW };

/// The kind leaves the validation of metadata to the generic rules.
pub(crate) const NOT_CHECKED: MetadataChecks =
    MetadataChecks { as_update: 0, as_new: 0, qualified_finalizers: false };

/// Members of the metadata that a write to a subresource cannot change (upstream:
/// `ResetObjectMetaForStatus`).
pub(crate) const METADATA_OF_OBJECT: Members = &[
    &["metadata", "annotations"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "finalizers"],
    &["metadata", "generation"],
    &["metadata", "labels"],
    &["metadata", "ownerReferences"],
    &["metadata", "selfLink"],
];

/// Restores the stored metadata, for subresources whose writes do not change it.
pub(crate) fn keep_metadata(new: &mut Value, old: &Value) {
    keep(new, old, METADATA_OF_OBJECT);
}

/// Restores all of the stored metadata but the managers.
pub(crate) fn keep_whole_metadata(new: &mut Value, old: &Value) {
    keep_metadata(new, old);
    keep(
        new,
        old,
        &[
            &["metadata", "deletionGracePeriodSeconds"],
            &["metadata", "generateName"],
            &["metadata", "uid"],
        ],
    );
}

/// Restores the stored labels.
pub(crate) fn keep_labels(new: &mut Value, old: &Value) {
    keep(new, old, &[&["metadata", "labels"]]);
}

fn keep(new: &mut Value, old: &Value, members: Members) {
    let metadata = new.object_entry("metadata");
    for path in members {
        let Some(member) = path.last() else { continue };
        match old.at(path) {
            Some(value) => metadata.insert(*member, value.clone()),
            None => metadata.remove(member),
        };
    }
}
