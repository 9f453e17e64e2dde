//! Settling: objects that have left the log are replaced by ones that take less memory
//! ([`Object::settled`]).

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Collection, State, UNDONE_BYTES};
use crate::object::FieldSets;
use crate::{Object, work};

impl Collection {
    /// Reduces the memory of objects that have left the log ([`Object::settled`]), until objects of
    /// `bytes_max` bytes were read; returns how many bytes may still be read. While an object is in
    /// the log, watches may send its frame, so its bytes stay in one piece.
    pub(in crate::cache) async fn settle(
        &self,
        sets: &Mutex<FieldSets>,
        bytes_max: usize,
    ) -> usize {
        if self.state.read().unsettled.is_empty() {
            return bytes_max;
        }
        let mut unsettled = std::mem::take(&mut self.state.write().unsettled).into_iter();
        let (mut settled, mut read, mut left) = (Vec::new(), 0, bytes_max);
        while left > 0
            && let Some(item) = unsettled.next()
        {
            let mut bytes = UNDONE_BYTES;
            if let Some(object) = self.get_old(&item) {
                bytes += object.size();
                settled.extend(object.settled(&mut sets.lock()).map(|after| (object, after)));
            }
            (read, left) = (read + bytes, left.saturating_sub(bytes));
            if read > work::YIELD_BYTES {
                self.replace(std::mem::take(&mut settled));
                read = 0;
                tokio::task::yield_now().await;
            }
        }
        self.replace(settled);
        self.state.write().unsettled.extend(unsettled);
        left
    }

    /// Returns the live object of a key if it has left the log.
    fn get_old(&self, item: &str) -> Option<Arc<Object>> {
        let state = self.state.read();
        state.live.get(item).filter(|object| object.revision <= state.floor).cloned()
    }

    /// Puts objects in the place of the same versions of them, if those are still live.
    fn replace(&self, objects: Vec<(Arc<Object>, Arc<Object>)>) {
        if objects.is_empty() {
            return;
        }
        let mut state = self.state.write();
        let befores: Vec<_> = objects
            .into_iter()
            .map(|(before, after)| {
                state.replace(&before, after);
                before
            })
            .collect();
        drop(state);
        drop(befores); // their bytes are freed without the lock
    }
}

impl State {
    /// Puts an object in the place of the same version of it, if that is still live.
    fn replace(&mut self, before: &Arc<Object>, after: Arc<Object>) {
        if self.is_live(before) {
            self.live.insert(after);
        }
    }
}
