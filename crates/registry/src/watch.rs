//! Watches: a collection's log, filtered for one client.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_store::{Kind, Revision};

use crate::cache::{BATCH_MAX, Cache, Change, Cursor, Lagged, ScopedCursor};
use crate::list::{self, reach};
use crate::request::{ListOptions, Target};
use crate::results::Event;
use crate::revision;
use crate::select::Selection;
use crate::{Object, Registry, Resource, work};

/// A running watch. The watch ends when it is dropped.
pub struct Watch {
    cache: Arc<Cache>,
    resource: Arc<Resource>,
    selection: Selection,
    /// Events to return before the log is read further: first the initial events, or one error.
    waiting: Vec<Event>,
    /// Changes that were read from the log and are not events yet.
    unread: Vec<Change>,
    /// `None` after an error.
    cursor: Option<ScopedCursor>,
    /// Changes up to this revision are skipped.
    after: Revision,
    bookmarks: bool,
}

impl Watch {
    /// Starts a watch: the cases RV-W1 … RV-W3, and streaming lists (SL).
    pub(crate) async fn start(
        registry: &Registry,
        target: &Target,
        options: &ListOptions,
    ) -> Result<Self, Status> {
        revision::check_watch(options)?;
        let selection = Selection::of(target, options)?;
        let requested = revision::parse(&options.resource_version)?;
        let since = requested.filter(|revision| *revision > Revision(0));
        if requested.is_none() {
            registry.catch_up().await?; // the watch starts with the newest state
        }
        let cache = &*registry.cache;
        let mut watch = Self {
            cache: registry.cache.clone(),
            resource: target.resource.clone(),
            selection,
            waiting: Vec::new(),
            unread: Vec::new(),
            cursor: None,
            after: Revision(0),
            bookmarks: options.bookmarks,
        };
        match (options.send_initial_events, since) {
            (Some(true), since) => {
                match reach(registry, target.resource.collection()?, since.unwrap_or_default())
                    .await
                {
                    Ok(()) => watch.begin_with_state().await?,
                    // Upstream's watch cache has sent the response headers by then.
                    Err(status) => watch.waiting = vec![Event::Error(Box::new(status))],
                }
            }
            (Some(false), None) => {
                let snapshot = target.resource.collection()?.snapshot(cache.visible());
                watch.after = snapshot.revision;
                watch.follow(Cursor::at(target.resource.collection()?.clone(), snapshot.next));
            }
            // As with initial events (upstream: `SetListOptionsDefaults`).
            (None, None) => watch.begin_with_state().await?,
            (_, Some(since)) => watch.begin_after(since)?,
        }
        Ok(watch)
    }

    /// Starts with all objects as ADDED events, then a bookmark if the client wants bookmarks.
    async fn begin_with_state(&mut self) -> Result<(), Status> {
        let collection = self.resource.collection()?;
        let snapshot = self.selection.snapshot(collection, self.cache.visible()).await;
        let all = self.selection.candidates(&snapshot.objects, "");
        work::ahead(list::estimate_scan(all.clone(), &self.selection, 0)).await;
        if self.selection.is_by_content() && !self.selection.is_of_view() {
            list::index(all.clone(), &self.resource).await;
        }
        self.waiting = if self.selection.is_of_view() {
            let named = all.filter(|object| self.selection.is_named(object)).cloned().collect();
            let seen = self.resource.in_own_version(named).await?.into_iter();
            seen.filter(|o| self.selection.matches(o)).map(Event::Added).collect()
        } else {
            let (selected, _) = self.selection.of_many(all, 0).await;
            selected.into_iter().cloned().map(Event::Added).collect()
        };
        list::check(self.waiting.iter().filter_map(Event::object)).await;
        collection.reads.initial_events.add(self.waiting.len() as u64);
        if self.bookmarks {
            self.waiting.push(Event::Bookmark { revision: snapshot.revision, initial_end: true });
        }
        self.after = snapshot.revision;
        self.follow(Cursor::at(collection.clone(), snapshot.next));
        Ok(())
    }

    /// Follows the changes in the selection's scope.
    fn follow(&mut self, cursor: Cursor) {
        self.cursor = Some(ScopedCursor::new(cursor, self.selection.scope()));
    }

    /// Starts with the changes after a revision, or with an ERROR event if the log was trimmed past
    /// it (WATCH-06).
    fn begin_after(&mut self, since: Revision) -> Result<(), Status> {
        self.after = since;
        match Cursor::after(self.resource.collection()?.clone(), since) {
            Ok(cursor) => self.follow(cursor),
            Err(Lagged) => {
                // Upstream names the oldest version, too (`getAllEventsSinceLocked`).
                let oldest = self.resource.collection()?.floor();
                let message = format!("too old resource version: {since} ({oldest})");
                self.waiting = vec![Event::Error(Box::new(Status::expired(message)))];
            }
        }
        Ok(())
    }

    /// Waits for the next events and returns at least one. After an [`Event::Error`], no further
    /// event comes. `None` when the resource's definition is replaced or removed: the watch is
    /// over. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        if self.waiting.is_empty() {
            let resource = self.resource.clone();
            tokio::select! {
                biased;
                events = self.changes() => self.waiting = events,
                () = resource.retired() => return None,
            }
        }
        match self.in_own_version().await {
            Ok(events) => {
                self.waiting.clear();
                Some(events)
            }
            Err(status) => {
                (self.waiting, self.cursor) = (Vec::new(), None);
                Some(vec![Event::Error(Box::new(status))])
            }
        }
    }

    /// Returns the pending events, with objects converted to the resource's version.
    async fn in_own_version(&self) -> Result<Vec<Event>, Status> {
        let mut events = self.waiting.clone();
        if self.resource.converter().is_none() {
            return Ok(events);
        }
        let mut objects: Vec<_> = events.iter_mut().filter_map(Event::object_mut).collect();
        let stored = objects.iter().map(|object| Arc::clone(object)).collect();
        let viewed = self.resource.in_own_version(stored).await?;
        for (object, viewed) in objects.iter_mut().zip(viewed) {
            **object = viewed;
        }
        Ok(events)
    }

    /// Waits for the next events, with objects in the stored form.
    async fn changes(&mut self) -> Vec<Event> {
        /// The cost of a change that is not sent: decoding so many bytes takes as long.
        const PASSED_BYTES: usize = 8;
        let of_one = PASSED_BYTES + 2 * self.selection.work();
        let mut bytes = 0_usize;
        loop {
            let Some(cursor) = &mut self.cursor else { return std::future::pending().await };
            if self.unread.is_empty() {
                match cursor.next().await {
                    Ok(changes) => self.unread = changes,
                    Err(Lagged) => {
                        let collection = self.resource.collection();
                        collection.iter().for_each(|collection| collection.reads.lagged.add(1));
                        self.cursor = None;
                        let status = Status::expired(
                            "The resourceVersion for the provided watch is too old.",
                        );
                        return vec![Event::Error(Box::new(status))];
                    }
                }
            }
            // While the log has more changes, the cursor is always ready, and few of them may be
            // selected.
            let is_behind = self.unread.len() >= BATCH_MAX;
            bytes = if is_behind { bytes } else { 0 };
            bytes = bytes.saturating_add(self.unread.len().saturating_mul(of_one));
            work::ahead(bytes).await;
            if bytes > work::YIELD_BYTES {
                bytes = 0;
                work::pause().await;
            }
            match self.convert_unread().await {
                Ok(()) => {
                    let changes = std::mem::take(&mut self.unread);
                    let events: Vec<_> = changes.iter().filter_map(|c| self.event(c)).collect();
                    if !events.is_empty() {
                        return events;
                    }
                }
                Err(status) => {
                    self.cursor = None;
                    return vec![Event::Error(Box::new(status))];
                }
            }
        }
    }

    /// Converts the unread changes to the resource's version, where selectors depend on the
    /// version.
    async fn convert_unread(&mut self) -> Result<(), Status> {
        if !self.selection.is_of_view() {
            return Ok(());
        }
        self.unread.retain(|change| self.selection.is_named(&change.object));
        let states = self.unread.iter().flat_map(|c| [Some(&c.object), c.previous.as_ref()]);
        let states = states.flatten().cloned().collect();
        let mut seen = self.resource.in_own_version(states).await?.into_iter();
        for change in &mut self.unread {
            for state in [Some(&mut change.object), change.previous.as_mut()].into_iter().flatten()
            {
                *state = seen.next().unwrap_or_else(|| state.clone());
            }
        }
        Ok(())
    }

    /// Returns the revision for a bookmark, if the client wants bookmarks and no event is pending.
    /// The handler calls this about once a minute, by the handler's own clock (BM-01).
    pub fn bookmark(&self) -> Option<Revision> {
        let nothing_pending = self.waiting.is_empty() && self.unread.is_empty();
        let cursor = self.cursor.as_ref().filter(|_| self.bookmarks && nothing_pending)?;
        // `visible` is read first: all changes up to it are in the log when the cursor is compared.
        let visible = self.cache.visible();
        cursor.caught_up().then(|| visible.max(self.after))
    }

    /// Returns the event of a change for this watcher: `Added` for an object that enters the
    /// selection, `Deleted` for an object that leaves the selection (WATCH-09).
    fn event(&self, change: &Change) -> Option<Event> {
        let object = &change.object;
        if object.revision <= self.after {
            return None;
        }
        let before = change.previous.as_ref().is_some_and(|o| self.selection.matches(o));
        if object.kind() == Kind::Deleted {
            return before.then(|| Event::Deleted(object.clone()));
        }
        match (before, self.selection.matches(object)) {
            (false, true) => Some(Event::Added(object.clone())),
            (true, true) => Some(Event::Modified(object.clone())),
            (true, false) => {
                let previous = change.previous.as_ref()?;
                Some(Event::Deleted(self.left_at(previous, object.revision)))
            }
            (false, false) => None,
        }
    }

    /// Returns an object's previous state, at the revision of the change by which it left the
    /// selection (OAS-16).
    fn left_at(&self, object: &Object, revision: Revision) -> Arc<Object> {
        if object.check().is_ok() {
            return object.deleted_at(revision);
        }
        // The event for an unreadable object has at least its name.
        let mut tree = object.identity(&self.resource);
        pintle_meta::object::set_text(&mut tree, "resourceVersion", revision.to_string());
        let mut bytes = Vec::with_capacity(object.size());
        let definition = &self.resource.definition;
        pintle_schema::encode::write(
            &definition.schema,
            definition.stored_type(),
            &tree,
            &mut bytes,
        );
        Object::bare(bytes.into(), object.item.clone(), revision, Kind::Deleted)
    }
}
