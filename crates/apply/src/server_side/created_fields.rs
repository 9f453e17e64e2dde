//! Remembers the fields of created objects. Most objects are made by controllers, many of one outline
//! after the other.

use std::sync::Arc;

use parking_lot::RwLock;
use pintle_value::Value;

use super::typed::Outline;

/// The number of outlines that are remembered.
const OUTLINES_MAX: usize = 4;

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
}

impl CreatedFields {
    /// Returns the fields of a new object, if one of its outline is remembered.
    pub(super) fn of(&self, new: &Value) -> Option<Box<str>> {
        let recent = self.recent.read().clone();
        recent.iter().find(|one| one.outline.fits(new)).map(|one| one.fields.clone())
    }

    /// Remembers the fields of objects of a outline, and forgets those that were added first.
    pub(super) fn add(&self, outline: Outline, fields: Box<str>) {
        let new = Arc::new(Remembered { outline, fields });
        let mut recent = self.recent.write();
        let others = recent.iter().take(OUTLINES_MAX - 1).cloned();
        *recent = [new].into_iter().chain(others).collect();
    }
}
