//! Cursors: positions in a collection's log. A watch is a cursor with a [`Scope`]; besides, the
//! cache holds only the topic of the scope, which all watches of the scope share.

use std::sync::Arc;

use pintle_store::Revision;
use tokio::sync::futures::Notified;

use super::collection::Collection;
use super::state::Change;
use super::topics::{Lagged, Scope, Topic};

/// A position in a collection's log.
pub(crate) struct Cursor {
    collection: Arc<Collection>,
    next: u64,
}

/// The most changes that one call returns. The bound keeps the time short for which a lagging
/// watcher holds the lock.
pub(crate) const BATCH_MAX: usize = 512;

impl Cursor {
    /// Makes a cursor at the change with the number `next`.
    pub(crate) const fn at(collection: Arc<Collection>, next: u64) -> Self {
        Self { collection, next }
    }

    /// Makes a cursor just after `revision`; fails if the log does not reach back to it.
    pub(crate) fn after(collection: Arc<Collection>, revision: Revision) -> Result<Self, Lagged> {
        let state = collection.state.read();
        if revision < state.floor {
            return Err(Lagged);
        }
        let next = state.first + state.after(revision) as u64;
        drop(state);
        Ok(Self { collection, next })
    }

    /// Returns the next changes, if there are any.
    pub(crate) fn take(&mut self) -> Result<Vec<Change>, Lagged> {
        self.take_before(u64::MAX)
    }

    /// Returns the next changes whose number is below `end`.
    fn take_before(&mut self, end: u64) -> Result<Vec<Change>, Lagged> {
        let state = self.collection.state.read();
        let Some(from) = self.next.checked_sub(state.first) else { return Err(Lagged) };
        let from = (from as usize).min(state.log.len());
        let count = usize::try_from(end - self.next).unwrap_or(usize::MAX).min(BATCH_MAX);
        let changes: Vec<_> = state.log.range(from..).take(count).cloned().collect();
        drop(state);
        self.next += changes.len() as u64;
        Ok(changes)
    }

    /// Returns the changes with these numbers, which are ascending and not behind the cursor.
    fn take_numbered(&mut self, numbers: &[u64]) -> Result<Vec<Change>, Lagged> {
        let Some(last) = numbers.last() else { return Ok(Vec::new()) };
        let state = self.collection.state.read();
        let change = |number: &u64| {
            let at = number.checked_sub(state.first).ok_or(Lagged)?;
            state.log.get(at as usize).cloned().ok_or(Lagged)
        };
        let changes = numbers.iter().map(change).collect::<Result<_, _>>()?;
        self.next = last + 1;
        Ok(changes)
    }

    /// Returns the next changes of a subscription, if there are any.
    fn take_of(&mut self, subscription: &Subscription) -> Result<Vec<Change>, Lagged> {
        match &subscription.topic {
            None => self.take(),
            Some(_) if self.next < subscription.since => self.take_before(subscription.since),
            Some(topic) => self.take_numbered(&topic.after(self.next, BATCH_MAX)?),
        }
    }

    /// Whether the cursor has returned every change.
    pub(crate) fn caught_up(&self) -> bool {
        self.next == self.collection.state.read().end()
    }
}

/// A watch's registration for a scope; ends when it is dropped.
struct Subscription {
    collection: Arc<Collection>,
    scope: Scope,
    /// `None` for [`Scope::Collection`], whose watches read the log itself.
    topic: Option<Arc<Topic>>,
    /// The number of the change from which on this subscription reads the topic; earlier changes
    /// are read from the log.
    since: u64,
}

/// A cursor that reads the changes of a scope, and can wait for them.
pub(crate) struct ScopedCursor {
    cursor: Cursor,
    subscription: Subscription,
}

impl ScopedCursor {
    /// Reads the changes in `scope` from the cursor's position on.
    pub(crate) fn new(cursor: Cursor, scope: Scope) -> Self {
        let subscription = cursor.collection.subscribe(scope);
        Self { cursor, subscription }
    }

    /// Waits for the next changes in the scope and returns at least one. Changes from before the
    /// subscription may be outside the scope, because they are read from the log. Cancel safe: the
    /// cursor moves only when changes are returned.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, Lagged> {
        loop {
            // The waiter registers before it reads the log, so that it misses no change in between.
            let changed = self.subscription.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let changes = self.cursor.take_of(&self.subscription)?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            changed.await;
        }
    }

    /// Returns the next changes, if there are any.
    #[cfg(test)]
    pub(super) fn take(&mut self) -> Result<Vec<Change>, Lagged> {
        self.cursor.take_of(&self.subscription)
    }

    /// Whether the cursor has returned every change in its scope.
    pub(crate) fn caught_up(&self) -> bool {
        let Some(topic) = &self.subscription.topic else { return self.cursor.caught_up() };
        // Dispatches first, because some changes may be in the log and not yet in the topic.
        !self.cursor.collection.dispatch().is_behind
            && self.cursor.next >= self.subscription.since
            && topic.after(self.cursor.next, 1).is_ok_and(|numbers| numbers.is_empty())
    }
}

impl Collection {
    /// Registers a watch for the changes of a scope.
    fn subscribe(self: &Arc<Self>, scope: Scope) -> Subscription {
        let mut topics = self.topics.lock();
        let topic = topics.get_or_insert(&scope);
        Subscription { collection: self.clone(), scope, topic, since: topics.next }
    }
}

impl Subscription {
    /// Returns a future that resolves when there may be new changes in the scope. The future is
    /// registered when the caller enables it.
    fn changed(&self) -> Notified<'_> {
        self.topic.as_ref().map_or(&self.collection.changed, |topic| &topic.changed).notified()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.collection.topics.lock().unsubscribe(&self.scope, self.topic.take());
    }
}
