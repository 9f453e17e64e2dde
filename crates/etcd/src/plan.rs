//! What becomes of a group of writes: which go together in one transaction, and which go before it.
//!
//! Purpose: a transaction gives all its writes one revision. A watch of one collection that is resumed
//! at a revision goes on after it, so two objects of one collection at one revision would be one too
//! many. Further writes of a collection go one by one: what is made or changed goes before the
//! transaction and is undone if that fails, and what is deleted goes after it, so that whatever the group
//! is about never exists without what belongs to it. A key that is written and then written again, to tell
//! watchers of both, is written in two transactions.
//!
//! Must not know: bytes, connections.

use std::collections::{HashMap, HashSet};

use pintle_store::{Change, Error, Expect, Group, Grouping, Key, Kind, Record, Revision, Write};

use crate::translation::number;

/// How many operations etcd takes in one transaction (--max-txn-ops).
const OPERATIONS_MAX: usize = 128;

/// What no key's revision is.
const NEVER: i64 = -1;

/// What a database with this id takes as one transaction. kine, which keeps etcd's API over SQL databases and
/// NATS, has none, and takes one write; there keys that are to be unchanged are read just before.
pub(crate) const fn grouping(cluster_id: u64) -> Grouping {
    if cluster_id == 0 { Grouping::Single } else { Grouping::Shared }
}

/// The steps of a group.
#[derive(Debug)]
pub(crate) struct Plan {
    /// These go one by one.
    pub(crate) before: Vec<Planned>,
    /// And then these in one transaction; the first is the write that the group is about.
    pub(crate) together: Vec<Planned>,
    /// And then these, one by one.
    pub(crate) after: Vec<Planned>,
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
    /// The key must be as a write before it in the group leaves it, instead of at a revision.
    pub(crate) follows: bool,
    /// Another write of the group follows it.
    pub(crate) is_followed: bool,
    /// Its index in the group.
    pub(crate) index: usize,
}

impl Plan {
    /// The plan of a group, or why it can never be committed.
    pub(crate) fn new(group: Group, grouping: Grouping) -> Result<Self, Error> {
        let Group { first, rest, unchanged } = group;
        let mut writes: Vec<Planned> = Vec::with_capacity(1 + rest.len());
        for (index, write) in std::iter::once(first).chain(rest).enumerate() {
            if write.expect == Expect::Left {
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
        let room = match grouping {
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
                || together.len() < room && !collections.contains(&planned.write.key.collection)
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
        let follows = write.expect == Expect::Left;
        Self { write, kind, expected, follows, is_followed: false, index }
    }

    /// Expects the revision that the write before it in the group has left, where it follows one.
    pub(crate) fn follow(&mut self, left: &HashMap<Key, Revision>) {
        if self.follows {
            self.expected = left.get(&self.write.key).and_then(|&at| number(at)).unwrap_or(NEVER);
        }
    }

    /// The write as a record of a revision.
    pub(crate) fn record(&self, revision: Revision) -> Record {
        let Write { key, change, note, .. } = self.write.clone();
        let (bytes, body) = change.template().fill(revision);
        Record { revision, key, kind: self.kind, bytes, body, note }
    }

    /// Whether it leaves a value of the key.
    fn leaves(&self, key: &Key) -> bool {
        self.write.key == *key && self.kind != Kind::Deleted
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
    use pintle_store::Template;

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

    /// The plan as text: what goes before, what goes together, and what goes after.
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
    fn one_of_each_collection_goes_together() {
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
    fn others_go_before_where_one_goes_at_a_time() {
        let writes = ["c/a@3=", "c/a^-", "d/a@0="];
        let expected = "0 c/a Updated 3, 2 d/a Created 0 | 1 c/a Deleted left | ";
        assert_eq!(plan(&writes, Grouping::Single).unwrap(), expected);
    }

    #[test]
    fn what_is_not_left_cannot_be_written() {
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
