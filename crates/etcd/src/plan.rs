//! The plan of a group of writes: which are committed in one transaction, which before it, and
//! which after.
//!
//! A transaction gives all its writes one revision. A watch of one collection resumes after a
//! revision, so a collection may have at most one object at each revision. Further writes to a
//! collection are committed one by one: puts before the transaction, undone if it fails, and
//! deletions after it. So the group's main object never exists without the keys that belong to it.
//! A key that is written twice, so that watchers see both states, needs two transactions.
//!
//! It must not know bytes or connections.

use std::collections::{HashMap, HashSet};

use pintle_store::{Change, Error, Expect, Group, Grouping, Key, Kind, Record, Revision, Write};

use crate::translation::number;

/// The most operations in one transaction of etcd (--max-txn-ops).
const OPERATIONS_MAX: usize = 128;

/// A revision that no key has.
const NEVER: i64 = -1;

/// Returns what a database with this id can commit as one transaction. kine, which offers etcd's
/// API on SQL databases and NATS, has the id 0 and takes one write; unchanged keys are read just
/// before it.
pub(crate) const fn grouping(cluster_id: u64) -> Grouping {
    if cluster_id == 0 { Grouping::Single } else { Grouping::Shared }
}

/// The steps of a group.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Writes that are committed one by one before the transaction.
    pub(crate) before: Vec<Planned>,
    /// The writes of the transaction; the first is the group's main write.
    pub(crate) together: Vec<Planned>,
    /// Writes that are committed one by one after the transaction.
    pub(crate) after: Vec<Planned>,
    /// Keys and revisions that are conditions of the transaction.
    pub(crate) unchanged: Vec<(Key, i64)>,
}

/// A write of a key.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) write: Write,
    pub(crate) kind: Kind,
    /// The expected revision of the key; 0 if it must be absent.
    pub(crate) expected: i64,
    /// Whether the write expects the revision of the previous write in the group.
    pub(crate) follows: bool,
    /// Whether the next write in the group expects this one's revision.
    pub(crate) is_followed: bool,
    /// The write's index in the group.
    pub(crate) index: usize,
}

impl Plan {
    /// Makes the plan of a group, or returns why it can never be committed.
    pub(crate) fn new(group: Group, grouping: Grouping) -> Result<Self, Error> {
        let Group { first, rest, unchanged } = group;
        let mut writes: Vec<Planned> = Vec::with_capacity(1 + rest.len());
        for (index, write) in std::iter::once(first).chain(rest).enumerate() {
            if write.expect == Expect::AfterPrevious {
                let before = writes.last_mut().filter(|before| before.leaves(&write.key));
                match before {
                    Some(before) => before.is_followed = true,
                    None => return Err(Error::CompanionConflict { key: write.key }),
                }
            }
            writes.push(Planned::new(index, write));
        }
        let unchanged: Vec<_> = unchanged
            .into_iter()
            .map(|(key, at)| (key, number(at).filter(|&at| at > 0).unwrap_or(NEVER)))
            .collect();
        let max = match grouping {
            Grouping::Each | Grouping::Shared => OPERATIONS_MAX.saturating_sub(unchanged.len()),
            Grouping::Single => 1,
        };
        let (mut before, mut together, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut collections = HashSet::new();
        for planned in writes {
            let is_first = together.is_empty() && !planned.is_followed;
            if planned.is_followed {
                before.push(planned);
            } else if is_first
                || together.len() < max && !collections.contains(&planned.write.key.collection)
            {
                collections.insert(planned.write.key.collection.clone());
                together.push(planned);
            } else if planned.kind == Kind::Deleted {
                after.push(planned);
            } else {
                before.push(planned);
            }
        }
        Ok(Self { before, together, after, unchanged })
    }
}

impl Planned {
    fn new(index: usize, write: Write) -> Self {
        let (kind, expected) = match (&write.change, write.expect) {
            (Change::Put(_), Expect::Absent) => (Kind::Created, 0),
            (Change::Put(_), expect) => (Kind::Updated, expected(expect)),
            (Change::Delete(_), expect) => (Kind::Deleted, expected(expect)),
        };
        let follows = write.expect == Expect::AfterPrevious;
        Self { write, kind, expected, follows, is_followed: false, index }
    }

    /// Sets the expected revision to that of the previous write in the group, if this write follows
    /// one.
    pub(crate) fn follow(&mut self, left: &HashMap<Key, Revision>) {
        if self.follows {
            self.expected = left.get(&self.write.key).and_then(|&at| number(at)).unwrap_or(NEVER);
        }
    }

    /// Returns the write as a record of a revision.
    pub(crate) fn record(&self, revision: Revision) -> Record {
        let Write { key, change, note, .. } = self.write.clone();
        let (bytes, body) = change.template().fill(revision);
        Record { revision, key, kind: self.kind, bytes, body, note }
    }

    /// Whether the write leaves a value at `key`.
    fn leaves(&self, key: &Key) -> bool {
        self.write.key == *key && self.kind != Kind::Deleted
    }
}

/// Returns the expected revision of an existing key.
fn expected(expect: Expect) -> i64 {
    match expect {
        Expect::At(at) => number(at).filter(|&at| at > 0).unwrap_or(NEVER),
        Expect::Absent | Expect::AfterPrevious => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use pintle_store::Template;

    use super::*;

    /// Parses `c/a@3=` (update), `c/a@0=` (create), `c/a@3-` (delete), `c/a^-` (delete after the
    /// previous write).
    fn write(text: &str) -> Write {
        let (key, rest) = text.split_at(text.find(['@', '^']).unwrap());
        let (collection, item) = key.split_once('/').unwrap();
        let (expect, change) = rest.split_at(rest.len() - 1);
        let template = Template::whole(text.as_bytes().to_vec());
        Write {
            key: Key { collection: collection.into(), item: item.into() },
            expect: match expect {
                "^" => Expect::AfterPrevious,
                "@0" => Expect::Absent,
                at => Expect::At(Revision(at[1..].parse().unwrap())),
            },
            change: if change == "=" { Change::Put(template) } else { Change::Delete(template) },
            note: None,
        }
    }

    /// Returns the plan as text: before, together, after.
    fn plan(writes: &[&str], grouping: Grouping) -> Result<String, Error> {
        let mut writes = writes.iter().map(|text| write(text));
        let first = writes.next().unwrap();
        let group = Group { first, rest: writes.collect(), unchanged: Vec::new() };
        let plan = Plan::new(group, grouping)?;
        let text = |planned: &[Planned]| {
            let text = planned.iter().map(|planned| {
                let Planned { write: Write { key, .. }, kind, expected, follows, .. } = planned;
                let expected = if *follows { "left".to_owned() } else { expected.to_string() };
                format!("{} {}/{} {kind:?} {expected}", planned.index, key.collection, key.item)
            });
            text.collect::<Vec<_>>().join(", ")
        };
        let parts = [&plan.before, &plan.together, &plan.after].map(|part| text(part));
        Ok(parts.join(" | "))
    }

    #[test]
    fn one_write_of_each_collection_is_in_the_transaction() {
        let rows: [(&[&str], &str); 7] = [
            (&["c/a@0="], " | 0 c/a Created 0 | "),
            (&["c/a@3=", "d/a@4-"], " | 0 c/a Updated 3, 1 d/a Deleted 4 | "),
            (
                &["c/a@3=", "d/a@0=", "c/b@0=", "d/b@5="],
                "2 c/b Created 0, 3 d/b Updated 5 | 0 c/a Updated 3, 1 d/a Created 0 | ",
            ),
            (
                &["c/a@3=", "d/a@4-", "d/b@5-"],
                " | 0 c/a Updated 3, 1 d/a Deleted 4 | 2 d/b Deleted 5",
            ),
            (
                &["c/a@3=", "c/a^-", "d/a@0="],
                "0 c/a Updated 3 | 1 c/a Deleted left, 2 d/a Created 0 | ",
            ),
            (
                &["c/a@3=", "c/a^=", "c/a^-"],
                "0 c/a Updated 3, 1 c/a Updated left | 2 c/a Deleted left | ",
            ),
            (&["c/a@18446744073709551615="], " | 0 c/a Updated -1 | "),
        ];
        for (writes, expected) in rows {
            assert_eq!(plan(writes, Grouping::Shared).unwrap(), expected, "{writes:?}");
        }
    }

    #[test]
    fn without_transactions_puts_precede_the_main_write() {
        let writes = ["c/a@3=", "c/a^-", "d/a@0="];
        let expected = "0 c/a Updated 3, 2 d/a Created 0 | 1 c/a Deleted left | ";
        assert_eq!(plan(&writes, Grouping::Single).unwrap(), expected);
    }

    #[test]
    fn a_write_after_previous_needs_a_put_of_its_key() {
        for writes in [&["c/a@3=", "c/b^-"][..], &["c/a@3-", "c/a^-"], &["c/a^-"]] {
            assert!(
                matches!(plan(writes, Grouping::Shared), Err(Error::CompanionConflict { .. })),
                "{writes:?}"
            );
        }
    }

    #[test]
    fn a_transaction_is_bounded() {
        let texts: Vec<_> = (0..200).map(|n| format!("c{n}/a@0=")).collect();
        let mut writes = texts.iter().map(|text| write(text));
        let first = writes.next().unwrap();
        let unchanged = vec![(first.key.clone(), Revision(3)), (first.key.clone(), Revision(0))];
        let group = Group { first, rest: writes.collect(), unchanged };
        let plan = Plan::new(group, Grouping::Shared).unwrap();
        assert_eq!((plan.together.len(), plan.before.len()), (126, 74));
        assert_eq!(plan.unchanged.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [3, NEVER]);
    }
}
