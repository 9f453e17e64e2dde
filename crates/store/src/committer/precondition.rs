//! Preconditions: which kind of change each write of a group is, or why the group conflicts.

use crate::index::Version;
use crate::{Change, Expect, Group, Key, Kind, Write};

/// Why a group is not committed.
pub(super) enum Conflict {
    /// The main key is not at the expected revision; this is its newest version.
    First(Option<Version>),
    /// This companion key is not at the expected revision.
    Rest(Key),
}

/// Returns the kind of change of each write in a group, or the conflict.
pub(super) fn kinds(
    group: &Group,
    newest: impl Fn(&Key) -> Option<Version>,
) -> Result<(Kind, Vec<Kind>), Conflict> {
    let kind = |write: &Write, newest| kind_of(write.expect, &write.change, newest);
    let current = newest(&group.first.key);
    let first = kind(&group.first, current).ok_or(Conflict::First(current))?;
    let rest = group.rest.iter().zip(group.writes()).map(|(write, before)| {
        let kind = match write.expect {
            Expect::AfterPrevious => kind_after(write, before),
            Expect::Absent | Expect::At(_) => kind(write, newest(&write.key)),
        };
        kind.ok_or_else(|| Conflict::Rest(write.key.clone()))
    });
    let rest = rest.collect::<Result<_, _>>()?;
    let changed = group
        .unchanged
        .iter()
        .find(|(key, revision)| newest(key).is_none_or(|version| version.revision() != *revision));
    match changed {
        Some((key, _)) => Err(Conflict::Rest(key.clone())),
        None => Ok((first, rest)),
    }
}

/// Returns the kind of a write to the key that the previous write put; `None` if the previous write
/// is of another key, or a deletion.
fn kind_after(write: &Write, before: &Write) -> Option<Kind> {
    let is_left = before.key == write.key && matches!(before.change, Change::Put(_));
    is_left.then_some(match write.change {
        Change::Put(_) => Kind::Updated,
        Change::Delete(_) => Kind::Deleted,
    })
}

/// Returns the kind of a write to a key with this newest version; `None` if the precondition fails.
fn kind_of(expect: Expect, change: &Change, newest: Option<Version>) -> Option<Kind> {
    match (expect, change, newest) {
        (Expect::Absent, Change::Put(_), None) => Some(Kind::Created),
        (Expect::At(revision), change, Some(version)) if version.revision() == revision => {
            Some(match change {
                Change::Put(_) => Kind::Updated,
                Change::Delete(_) => Kind::Deleted,
            })
        }
        _ => None,
    }
}
