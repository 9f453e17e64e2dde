//! Packing of a live set: the same set with full nodes.
//!
//! Keys that arrive in order, as those of a collection that is read from the store mostly do, leave
//! each node of the set half full: it is split when it is full, and only its second half grows.

use pintle_store::Kind;

use super::{Collection, Objects, State};

/// A live set of fewer objects is not packed.
const PACKED_MIN: usize = 512;

/// How many objects are inserted before other tasks get their turn: about a millisecond.
const INSERTED_AT_ONCE: usize = 2048;

impl Collection {
    /// Packs the live set if it has grown much since it was packed last.
    pub(in crate::cache) async fn pack(&self) {
        let (live, end) = {
            let state = self.state.read();
            if !is_due(state.live.len(), state.packed) {
                return;
            }
            (state.live.clone(), state.end())
        };
        let packed = packed(&live).await;
        let unused = self.state.write().replace_live(packed, end);
        drop(unused); // its nodes are freed without the lock
    }
}

impl State {
    /// Replaces the live set by `live`, which is the same set before the change with the number
    /// `end`; returns the set that is not used. That is `live` if the log has not all changes
    /// since, or if the history was lost.
    fn replace_live(&mut self, mut live: Objects, end: u64) -> Objects {
        let Some(changes) = self.numbered(end..self.end()) else { return live };
        for change in &changes {
            let item = &change.object.item;
            match change.object.kind() {
                Kind::Deleted => live.remove(item),
                Kind::Created | Kind::Updated => live.insert(item.clone(), change.object.clone()),
            };
        }
        debug_assert_eq!(live.len(), self.live.len(), "the log has every change");
        self.packed = live.len();
        std::mem::replace(&mut self.live, live)
    }
}

/// Whether a live set is to be packed that had `packed` objects when it was packed last. It has
/// doubled since, so packing costs each object one more insertion on average.
const fn is_due(objects: usize, packed: usize) -> bool {
    objects >= PACKED_MIN && objects >= 2 * packed
}

/// Returns the same set with full nodes. Every second object is inserted first: the nodes are half
/// full then, and the others fill them.
async fn packed(objects: &Objects) -> Objects {
    let mut packed = Objects::new();
    for first in [0, 1] {
        for (number, (item, object)) in objects.iter().skip(first).step_by(2).enumerate() {
            packed.insert(item.clone(), object.clone());
            if number % INSERTED_AT_ONCE == INSERTED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
    packed
}
