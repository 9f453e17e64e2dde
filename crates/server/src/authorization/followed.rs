//! Indexes over objects of the registry that authorizers answer from.
//!
//! Every question is answered by what was acknowledged before it: the index takes in what is new first, and
//! mostly nothing is.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pintle_meta::GroupVersionResource;
use pintle_registry::{Feed, News, Object, Registry};

/// What is known of some kinds of objects.
pub(super) trait Index {
    type Kind: Copy;

    /// Takes in what became of an object; [`Object::kind`] says what.
    fn take(&mut self, kind: Self::Kind, object: &Object);

    /// Forgets all objects of a kind.
    fn clear(&mut self, kind: Self::Kind);
}

/// An index that follows a registry.
pub(super) struct Followed<I: Index>(RwLock<State<I>>);

struct State<I: Index> {
    index: I,
    feeds: Vec<(I::Kind, Feed)>,
}

impl<I: Index> Followed<I> {
    /// Follows nothing yet.
    pub(super) const fn new(index: I) -> Self {
        Self(RwLock::new(State { index, feeds: Vec::new() }))
    }

    /// Follows objects of a registry from now on. A kind that is not served has none.
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

    /// The index, with all that is new.
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
                Ok(News::State(objects)) => {
                    index.clear(*kind);
                    objects
                }
                Ok(News::Changes(objects)) => objects,
                Err(_) => continue, // such objects are kept
            };
            objects.iter().for_each(|object| index.take(*kind, object));
        }
    }
}
