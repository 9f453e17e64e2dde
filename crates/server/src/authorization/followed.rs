//! Indexes over registry objects, from which authorizers decide.
//!
//! Each query first applies pending changes, so it sees every write that was acknowledged before
//! it. Usually no change is pending.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pintle_meta::GroupVersionResource;
use pintle_registry::{Feed, FeedUpdate, Object, Registry};

/// An index over objects of some kinds.
pub(super) trait Index {
    type Kind: Copy;

    /// Applies a change of an object: a creation, an update or a deletion, by [`Object::kind`].
    fn take(&mut self, kind: Self::Kind, object: &Object);

    /// Removes all objects of a kind.
    fn clear(&mut self, kind: Self::Kind);
}

/// An index with its feeds.
pub(super) struct Followed<I: Index>(RwLock<State<I>>);

struct State<I: Index> {
    index: I,
    feeds: Vec<(I::Kind, Feed)>,
}

impl<I: Index> Followed<I> {
    /// An index without feeds.
    pub(super) const fn new(index: I) -> Self {
        Self(RwLock::new(State { index, feeds: Vec::new() }))
    }

    /// Starts to follow these kinds of a registry. A kind that is not served has no objects.
    pub(super) fn follow(
        &self,
        registry: &Registry,
        kinds: impl IntoIterator<Item = (I::Kind, GroupVersionResource)>,
    ) {
        let feeds = kinds
            .into_iter()
            .filter_map(|(kind, name)| Some((kind, registry.feed(&registry.resource(&name)?))));
        self.0.write().feeds = feeds.collect();
    }

    /// The index after all pending changes.
    pub(super) fn current(&self) -> impl std::ops::Deref<Target = I> {
        RwLockReadGuard::map(self.caught_up(), |state| &state.index)
    }

    fn caught_up(&self) -> RwLockReadGuard<'_, State<I>> {
        let state = self.0.read();
        if state.feeds.iter().all(|(_, feed)| feed.is_current()) {
            return state;
        }
        drop(state);
        let mut state = self.0.write();
        state.catch_up();
        RwLockWriteGuard::downgrade(state)
    }
}

impl<I: Index> State<I> {
    fn catch_up(&mut self) {
        let Self { index, feeds } = self;
        for (kind, feed) in feeds {
            let objects = match feed.take() {
                Ok(FeedUpdate::State(objects)) => {
                    index.clear(*kind);
                    objects
                }
                Ok(FeedUpdate::Changes(objects)) => objects,
                Err(_) => continue, // a virtual resource has no stored objects
            };
            objects.iter().for_each(|object| index.take(*kind, object));
        }
    }
}
