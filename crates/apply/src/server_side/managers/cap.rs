//! Bounds the number of updaters in `managedFields` by merging the oldest.

use std::collections::BTreeMap;

use pintle_value::Str;

use super::{FieldSet, Identity, Managers, Operation};

/// The manager into which the oldest updaters are merged (SSAI-01).
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest updaters, version by version, until there are at most `updaters_max`. One
/// updater for each version remains, so there can be more.
pub(crate) fn cap(managers: &mut Managers, updaters_max: usize) {
    let updaters =
        || managers.iter().filter(|(identity, _)| identity.operation == Operation::Update);
    let mut count = updaters().count();
    if count <= updaters_max {
        return;
    }
    let mut updaters: Vec<(i64, Identity)> = updaters()
        .map(|(identity, owned)| {
            let second = owned.unix_micros.map_or(0, |t| t.div_euclid(1_000_000));
            (second, identity.clone())
        })
        .collect();
    updaters.sort();
    let mut first_of = BTreeMap::<Str, Identity>::new();
    // The fields are united at the end: thousands of managers may be merged into a large one.
    let mut merged = BTreeMap::<Identity, Vec<FieldSet>>::new();
    for (_, identity) in updaters {
        if count <= updaters_max {
            break;
        }
        let Some(owned) = managers.get(&identity) else { continue };
        let bucket = Identity::new(ANCIENT, Operation::Update, &owned.api_version, "");
        let Some(first) = first_of.get(&owned.api_version) else {
            first_of.insert(owned.api_version.clone(), identity);
            continue;
        };
        if identity == bucket {
            continue;
        }
        if !managers.contains_key(&bucket) {
            let Some(owned) = managers.remove(first) else { continue };
            managers.insert(bucket.clone(), owned);
        }
        let Some(owned) = managers.remove(&identity) else { continue };
        if let Some(ancient) = managers.get_mut(&bucket) {
            ancient.unix_micros = owned.unix_micros;
            merged.entry(bucket).or_default().push(owned.fields().clone());
        }
        count -= 1;
    }
    for (bucket, fields) in merged {
        if let Some(ancient) = managers.get_mut(&bucket) {
            ancient.change(|before| before.union(FieldSet::union_of(fields)));
        }
    }
}
