//! What becomes of a group of writes: which go together in one transaction, and which go before it.
//!
//! Purpose: a transaction gives all its writes one revision. A watch of one collection that is resumed
//! at a revision goes on after it, so two objects of one collection at one revision would be one too
//! many: further writes of a collection go first, one by one, and are undone if the rest fails.
//!
//! Must not know: bytes, connections.

use std::collections::HashSet;

use pintle_store::{Change, Error, Expect, Group, Key, Kind, Write};

use crate::translation::number;

/// How many operations etcd takes in one transaction (--max-txn-ops).
const OPERATIONS_MAX: usize = 128;

/// What no key's revision is.
const NEVER: i64 = -1;

/// The steps of a group.
#[derive(Debug)]
pub(crate) struct Plan {
    /// These go one by one.
    pub(crate) before: Vec<Planned>,
    /// And then these in one transaction; the first is the write that the group is about.
    pub(crate) together: Vec<Planned>,
    /// Keys whose revisions the transaction depends on.
    pub(crate) unchanged: Vec<(Key, i64)>,
}

/// A write of a key.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) write: Write,
    pub(crate) kind: Kind,
    /// The revision at which the key must have been written last; 0 if it must be absent.
    pub(crate) expected: i64,
    /// Its place in the group.
    pub(crate) place: usize,
    /// Writes of the same key in the group that this one takes the place of.
    pub(crate) replaced: Vec<(usize, Write)>,
}

impl Plan {
    /// The plan of a group, or why it can never be committed.
    pub(crate) fn new(group: Group) -> Result<Self, Error> {
        let Group { first, rest, unchanged } = group;
        let mut writes: Vec<Planned> = Vec::with_capacity(1 + rest.len());
        for (place, write) in std::iter::once(first).chain(rest).enumerate() {
            if write.expect != Expect::Left {
                writes.push(Planned::new(place, write));
                continue;
            }
            let before = writes.last_mut().filter(|before| before.leaves(&write.key));
            match before {
                Some(before) => before.replace(place, write),
                None => return Err(Error::CompanionConflict { key: write.key }),
            }
        }
        let unchanged: Vec<_> = unchanged
            .into_iter()
            .map(|(key, at)| (key, number(at).filter(|&at| at > 0).unwrap_or(NEVER)))
            .collect();
        let room = OPERATIONS_MAX.saturating_sub(unchanged.len());
        let mut collections = HashSet::new();
        let mut taken = 0;
        let (together, before) = writes.into_iter().partition(|planned| {
            let is_first = taken == 0;
            let fits = taken < room && collections.insert(planned.write.key.collection.clone());
            taken += usize::from(is_first || fits);
            is_first || fits
        });
        Ok(Self { before, together, unchanged })
    }
}

impl Planned {
    fn new(place: usize, write: Write) -> Self {
        let (kind, expected) = match (&write.change, write.expect) {
            (Change::Put(_), Expect::Absent) => (Kind::Created, 0),
            (Change::Put(_), expect) => (Kind::Updated, expected(expect)),
            (Change::Delete(_), expect) => (Kind::Deleted, expected(expect)),
        };
        Self { write, kind, expected, place, replaced: Vec::new() }
    }

    /// Whether it leaves a value of the key.
    fn leaves(&self, key: &Key) -> bool {
        self.write.key == *key && self.kind != Kind::Deleted
    }

    /// Makes it what the write after it in the group, of the same key, makes of the key.
    fn replace(&mut self, place: usize, write: Write) {
        if matches!(write.change, Change::Delete(_)) {
            self.kind = Kind::Deleted;
        }
        let replaced = std::mem::replace(&mut self.write, write);
        self.replaced.push((std::mem::replace(&mut self.place, place), replaced));
    }
}

/// The revision at which a key that exists must have been written last.
fn expected(expect: Expect) -> i64 {
    match expect {
        Expect::At(at) => number(at).filter(|&at| at > 0).unwrap_or(NEVER),
        Expect::Absent | Expect::Left => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use pintle_store::{Revision, Template};

    use super::*;

    /// `c/a@3=` updates, `c/a@0=` creates, `c/a@3-` deletes, `c/a^-` deletes what the one before left.
    fn write(text: &str) -> Write {
        let (key, rest) = text.split_at(text.find(['@', '^']).unwrap());
        let (collection, item) = key.split_once('/').unwrap();
        let (expect, change) = rest.split_at(rest.len() - 1);
        let template = Template::whole(text.as_bytes().to_vec());
        Write {
            key: Key { collection: collection.into(), item: item.into() },
            expect: match expect {
                "^" => Expect::Left,
                "@0" => Expect::Absent,
                at => Expect::At(Revision(at[1..].parse().unwrap())),
            },
            change: if change == "=" { Change::Put(template) } else { Change::Delete(template) },
            note: None,
        }
    }

    /// The plan as text: what goes before, and what goes together.
    fn plan(writes: &[&str]) -> Result<String, Error> {
        let mut writes = writes.iter().map(|text| write(text));
        let first = writes.next().unwrap();
        let plan = Plan::new(Group { first, rest: writes.collect(), unchanged: Vec::new() })?;
        let text = |planned: &[Planned]| {
            let text = planned.iter().map(|planned| {
                let Planned { write: Write { key, .. }, kind, expected, place, replaced } = planned;
                let replaced: Vec<_> = replaced.iter().map(|(place, _)| place).collect();
                format!("{place}{replaced:?} {}/{} {kind:?} {expected}", key.collection, key.item)
            });
            text.collect::<Vec<_>>().join(", ")
        };
        Ok(format!("{} | {}", text(&plan.before), text(&plan.together)))
    }

    #[test]
    fn one_of_each_collection_goes_together() {
        let rows: [(&[&str], &str); 7] = [
            (&["c/a@0="], " | 0[] c/a Created 0"),
            (&["c/a@3=", "d/a@4-"], " | 0[] c/a Updated 3, 1[] d/a Deleted 4"),
            (
                &["c/a@3=", "d/a@0=", "c/b@0=", "d/b@5="],
                "2[] c/b Created 0, 3[] d/b Updated 5 | 0[] c/a Updated 3, 1[] d/a Created 0",
            ),
            (&["c/a@3=", "c/a^-", "d/a@0="], " | 1[0] c/a Deleted 3, 2[] d/a Created 0"),
            (&["c/a@3=", "c/a^=", "c/a^-"], " | 2[0, 1] c/a Deleted 3"),
            (&["c/a@0="], " | 0[] c/a Created 0"),
            (&["c/a@18446744073709551615="], " | 0[] c/a Updated -1"),
        ];
        for (writes, expected) in rows {
            assert_eq!(plan(writes).unwrap(), expected, "{writes:?}");
        }
    }

    #[test]
    fn what_is_not_left_cannot_be_written() {
        for writes in [&["c/a@3=", "c/b^-"][..], &["c/a@3-", "c/a^-"], &["c/a^-"]] {
            assert!(matches!(plan(writes), Err(Error::CompanionConflict { .. })), "{writes:?}");
        }
    }

    #[test]
    fn a_transaction_is_bounded() {
        let texts: Vec<_> = (0..200).map(|n| format!("c{n}/a@0=")).collect();
        let mut writes = texts.iter().map(|text| write(text));
        let first = writes.next().unwrap();
        let unchanged = vec![(first.key.clone(), Revision(3)), (first.key.clone(), Revision(0))];
        let plan = Plan::new(Group { first, rest: writes.collect(), unchanged }).unwrap();
        assert_eq!((plan.together.len(), plan.before.len()), (126, 74));
        assert_eq!(plan.unchanged.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [3, NEVER]);
    }
}
