//! The bytes of an object: its JSON as it was encoded, beside the object or not, or divided into
//! abridged JSON and the field sets that it shares with other objects.
//!
//! The field sets of managers (`fieldsV1`) are often half of an object, and objects that were made
//! from one template have the same ones. An object that has left the log of changes is divided, so
//! that each set is held once.
//!
//! Invariant: the pieces of a divided body, one after the other, are the JSON that was encoded.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pintle_value::{Value, json};

use super::field_sets::{FieldSets, SHARED_MIN};
use super::head::OWNED_FIELDS;

/// What abridged JSON has in place of a shared set.
const EMPTY: &[u8] = b"{}";

/// Objects that are longer stay whole, so that a response sends a slice of their bytes and copies
/// nothing.
const WHOLE_MIN: usize = 64 << 10;

/// An object is divided if it shares at least one byte of so many.
const WORTHWHILE: usize = 8;

/// The bytes of an object.
#[derive(Debug)]
pub(super) enum Body {
    /// The JSON, within its watch frame or not.
    Whole(Bytes),
    /// The JSON of an object that was read from the store, or has left the history.
    Settled(Settled),
}

/// JSON without a frame in less memory. It is an enum of its own so that a body takes no more
/// memory than `Bytes`.
#[derive(Debug)]
pub(super) enum Settled {
    /// It lies in one allocation with the object, and has this length.
    Near(usize),
    /// It is divided.
    Divided(Box<Divided>),
}

/// JSON that shares field sets.
#[derive(Debug)]
pub(super) struct Divided {
    /// The JSON in which the shared sets are empty.
    abridged: Box<[u8]>,
    /// The sets that it shares, in order.
    sets: Box<[Shared]>,
}

/// A shared set of an object.
#[derive(Debug)]
struct Shared {
    /// The offset in the abridged JSON of the empty set in its place.
    at: u32,
    /// The number of its entry in `managedFields`.
    entry: u32,
    set: Arc<str>,
}

impl Divided {
    /// Divides an object's JSON; `None` if too little of it would be shared. JSON that is not valid
    /// is divided, too: if its abridged form is valid, so is the JSON, because each set is. `item`
    /// is the object's key.
    pub(super) fn of(json: &[u8], item: &str, known: &mut FieldSets) -> Option<Self> {
        let is_worthwhile = |bytes: usize| bytes > 0 && bytes * WORTHWHILE >= json.len();
        let sets = if json.len() > WHOLE_MIN { Vec::new() } else { find_sets(json) };
        if !is_worthwhile(sets.iter().map(|(_, set)| set.len()).sum()) {
            return None;
        }
        let shared = |(entry, range): (u32, Range<usize>)| {
            Some((entry, range.clone(), known.share(&json[range], item)?))
        };
        let shared: Vec<_> = sets.into_iter().filter_map(shared).collect();
        let saved = shared.iter().map(|(_, range, _)| range.len() - EMPTY.len()).sum();
        if !is_worthwhile(saved) {
            return None;
        }
        // The exact length: the memory of other objects that were divided is used again.
        let mut abridged = Vec::with_capacity(json.len() - saved);
        let (mut sets, mut copied) = (Vec::with_capacity(shared.len()), 0);
        for (entry, range, set) in shared {
            abridged.extend_from_slice(&json[copied..range.start]);
            sets.push(Shared { at: u32::try_from(abridged.len()).ok()?, entry, set });
            abridged.extend_from_slice(EMPTY);
            copied = range.end;
        }
        abridged.extend_from_slice(&json[copied..]);
        Some(Self { abridged: abridged.into(), sets: sets.into() })
    }

    pub(super) fn abridged(&self) -> &[u8] {
        &self.abridged
    }

    /// The length of the whole JSON.
    pub(super) fn len(&self) -> usize {
        let sets = self.sets.iter().map(|shared| shared.set.len() - EMPTY.len());
        self.abridged.len() + sets.sum::<usize>()
    }

    /// The parts of the whole JSON, in order.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.sets.iter().map(|shared| shared.at as usize);
        let starts = std::iter::once(0).chain(ends.clone().map(|at| at + EMPTY.len()));
        let between = starts.zip(ends.chain([self.abridged.len()]));
        let sets = self.sets.iter().map(|shared| Some(shared.set.as_bytes())).chain([None]);
        let pairs = between.zip(sets);
        pairs.flat_map(|((start, end), set)| [Some(&self.abridged[start..end]), set]).flatten()
    }

    /// Puts the shared sets into the tree of the abridged JSON, or of a part of it.
    pub(super) fn complete(&self, tree: &mut Value) {
        let [metadata, managed_fields, fields] = OWNED_FIELDS;
        let entries = tree.get_mut(metadata).and_then(|members| members.get_mut(managed_fields));
        let Some(entries) = entries.and_then(Value::as_array_mut) else { return };
        for Shared { entry, set, .. } in &self.sets {
            let entry = entries.get_mut(*entry as usize);
            if let Some(place) = entry.and_then(|entry| entry.get_mut(fields)) {
                *place = Value::raw((**set).into());
            }
        }
    }

    /// The whole JSON.
    pub(super) fn json(&self) -> Bytes {
        let mut json = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| json.extend_from_slice(piece));
        json.into()
    }
}

/// Returns the field sets in an object's JSON that are long enough to be shared, each with the
/// number of its entry. An entry that names its set twice is left out: readers use the last one.
fn find_sets(json: &[u8]) -> Vec<(u32, Range<usize>)> {
    let Some(entries) = json::at(json, &OWNED_FIELDS[..2]) else { return Vec::new() };
    let set = |(number, entry): (u32, Range<usize>)| {
        let entry = entries.start + entry.start..entries.start + entry.end;
        let mut sets = json::members(&json[entry.clone()])
            .filter(|(name, _)| *name == OWNED_FIELDS[2].as_bytes());
        let (_, set) = sets.next().filter(|(_, set)| set.len() >= SHARED_MIN)?;
        sets.next().is_none().then_some((number, entry.start + set.start..entry.start + set.end))
    };
    (0..).zip(json::items(&json[entries.clone()])).filter_map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"{"f:a":{"k:{\"x\":\"}\"}":{}},"#;

    /// A set that is long enough to be shared.
    fn set(name: &str) -> String {
        let members: Vec<_> = (0..40).map(|at| format!("\"f:{name}{at}\":{{}}")).collect();
        format!("{SET}{}}}", members.join(","))
    }

    fn object(entries: &[String]) -> String {
        let entries: Vec<_> = entries
            .iter()
            .map(|set| format!(r#"{{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{set}}}"#))
            .collect();
        format!(
            r#"{{"kind":"T","metadata":{{"name":"a","managedFields":[{}]}},"data":{{"fieldsV1":{{}}}}}}"#,
            entries.join(",")
        )
    }

    /// The pieces are the JSON again, and the abridged JSON is the JSON with empty sets, whichever of the
    /// sets are shared.
    #[test]
    fn a_divided_body_is_the_json() {
        let (a, b, short) = (set("a"), set("b"), "{\"f:data\":{}}".to_owned());
        let empty = || "{}".to_owned();
        let mut known = FieldSets::default();
        for (number, (sets, outline)) in [
            (vec![a.clone()], None),
            (vec![a.clone()], Some(vec![empty()])),
            (vec![b.clone(), a.clone()], Some(vec![b.clone(), empty()])),
            (
                vec![a.clone(), short.clone(), b.clone()],
                Some(vec![empty(), short.clone(), empty()]),
            ),
            (vec![short.clone()], None),
            (vec![], None),
        ]
        .into_iter()
        .enumerate()
        {
            let (json, item) = (object(&sets), number.to_string());
            let divided = Divided::of(json.as_bytes(), &item, &mut known);
            let seen = divided.as_ref().map(|divided| String::from_utf8_lossy(divided.abridged()));
            assert_eq!(seen.as_deref(), outline.map(|sets| object(&sets)).as_deref(), "{json}");
            if let Some(divided) = divided {
                assert_eq!((divided.json().as_ref(), divided.len()), (json.as_bytes(), json.len()));
                let tree = |json: &[u8]| json::parse_with_raw(json, OWNED_FIELDS).expect("valid");
                let mut completed = tree(divided.abridged());
                divided.complete(&mut completed);
                assert_eq!(completed, tree(json.as_bytes()));
            }
        }
        for odd in ["", "{}", "[1]", r#"{"metadata":{"managedFields":{"fieldsV1":{}}}}"#] {
            assert!(Divided::of(odd.as_bytes(), "odd", &mut known).is_none(), "{odd}");
        }
    }

    /// A value that cannot be read does not become readable, and one that is read in another way
    /// than it looks keeps its bytes: sets with an error, sets that are nested too deep within the
    /// object, and the second set of an entry stay where they are. So do sets of long objects.
    #[test]
    fn some_sets_are_not_shared() {
        let deep = format!(r#"{{"f:a":{}{}}}"#, "[".repeat(510), "]".repeat(510));
        let long = format!(r#""data":"{}""#, "x".repeat(WHOLE_MIN));
        for json in [
            object(&[set("a").replace("\"f:a7\":{}", "\"f:a7\":{7}")]),
            object(&[deep]),
            object(&[format!(r#"{},"fieldsV1":{{}}"#, set("a"))]),
            object(&[set("a")]).replace(r#""data":{"fieldsV1":{}}"#, &long),
            object(&[set("a")]).replace(r#""data":{"fieldsV1":{}}"#, &long[..8 * set("a").len()]),
        ] {
            let mut known = FieldSets::default();
            for item in ["a", "b", "c"] {
                assert!(Divided::of(json.as_bytes(), item, &mut known).is_none(), "{json}");
            }
        }
    }
}
