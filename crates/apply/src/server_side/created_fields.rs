//! Remembers the fields of created objects: controllers create many objects, one after the other,
//! that differ in values only.

use std::sync::Arc;

use parking_lot::RwLock;
use pintle_value::Value;

use super::typed::Outline;

/// The most outlines that are remembered.
const OUTLINES_MAX: usize = 4;

/// The most bytes that are remembered: the outlines and their fields.
const BYTES_MAX: usize = 128 << 10;

/// The fields of objects of one type that one kind of write created last, by their outlines.
#[derive(Debug, Default)]
pub struct CreatedFields {
    /// The newest first.
    recent: RwLock<Arc<[Arc<Remembered>]>>,
}

#[derive(Debug)]
struct Remembered {
    outline: Outline,
    /// FieldsV1.
    fields: Box<str>,
    /// The size of both.
    bytes: usize,
}

impl CreatedFields {
    /// Returns the fields of a new object, if those of its outline are remembered.
    pub(super) fn of(&self, new: &Value) -> Option<Box<str>> {
        let recent = self.recent.read().clone();
        recent.iter().find(|one| one.outline.fits(new)).map(|one| one.fields.clone())
    }

    /// Remembers the fields of objects of an outline, whose size is given in bytes. Forgets those
    /// that were added first, up to the bounds.
    pub(super) fn add(&self, (outline, bytes): (Outline, usize), fields: Box<str>) {
        let bytes = bytes + fields.len();
        if bytes > BYTES_MAX {
            return;
        }
        let new = Arc::new(Remembered { outline, fields, bytes });
        let mut recent = self.recent.write();
        let all = [new].into_iter().chain(recent.iter().cloned()).take(OUTLINES_MAX);
        let mut left = BYTES_MAX;
        let retained = all.map_while(|one| {
            left = left.checked_sub(one.bytes)?;
            Some(one)
        });
        *recent = retained.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the fields of an outline that fits one value.
    fn add(created: &CreatedFields, value: i64, bytes: usize) {
        created.add((Outline::Exactly(Value::Int(value)), bytes), value.to_string().into());
    }

    fn known(created: &CreatedFields) -> Vec<i64> {
        (0..10).filter(|value| created.of(&Value::Int(*value)).is_some()).collect()
    }

    #[test]
    fn the_newest_outlines_are_remembered_within_bounds() {
        let created = CreatedFields::default();
        for value in 0..6 {
            add(&created, value, 1000);
        }
        assert_eq!(created.of(&Value::Int(4)).as_deref(), Some("4"));
        assert_eq!(known(&created), [2, 3, 4, 5], "as many as are allowed");
        add(&created, 6, BYTES_MAX - 2 * 1000 - 10);
        assert_eq!(known(&created), [4, 5, 6], "as many as fit");
        add(&created, 7, BYTES_MAX);
        assert_eq!(known(&created), [4, 5, 6], "one that is too large is not remembered");
    }
}
