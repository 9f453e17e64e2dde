//! Watches: what a client is told of a collection's log.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_store::{Kind, Revision};
use pintle_value::Str;

use crate::answer::Event;
use crate::cache::{Cache, Change, Cursor, Lagged};
use crate::list::{self, reach};
use crate::request::{ListOptions, Target};
use crate::revision;
use crate::select::Selection;
use crate::{Object, Registry, Resource, work};

/// A running watch. Dropping it costs nobody anything.
pub struct Watch {
    cache: Arc<Cache>,
    resource: Arc<Resource>,
    selection: Selection,
    /// What is to be told before more is taken from the log: at first the initial events, or the one
    /// error.
    waiting: Vec<Event>,
    /// What was taken from the log and not yet looked at.
    unread: Vec<Change>,
    /// `None` after an error.
    cursor: Option<Cursor>,
    /// Changes up to here are not told.
    after: Revision,
    bookmarks: bool,
}

impl Watch {
    /// Begins a watch: the cells RV-W1 … RV-W3, and streaming lists (SL).
    pub(crate) async fn start(
        registry: &Registry,
        target: &Target,
        options: &ListOptions,
    ) -> Result<Self, Status> {
        revision::check_watch(options)?;
        let selection = Selection::of(target, options)?;
        let asked = revision::parse(&options.resource_version)?;
        let since = asked.filter(|revision| *revision > Revision(0));
        if asked.is_none() {
            registry.catch_up().await?; // it begins with the newest state
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
                match reach(cache, target.resource.collection()?, since.unwrap_or_default()).await {
                    Ok(()) => watch.begin_with_state(&target.namespace).await?,
                    // Upstream's cache has begun to answer by then.
                    Err(status) => watch.waiting = vec![Event::Error(Box::new(status))],
                }
            }
            (Some(false), None) => {
                let snapshot = target.resource.collection()?.snapshot(cache.visible());
                watch.after = snapshot.revision;
                watch.cursor =
                    Some(Cursor::at(target.resource.collection()?.clone(), snapshot.next));
            }
            // Likewise where nothing is asked for (upstream: `SetListOptionsDefaults`).
            (None, None) => watch.begin_with_state(&target.namespace).await?,
            (_, Some(since)) => watch.begin_after(since)?,
        }
        Ok(watch)
    }

    /// The whole state as ADDED events, their end marked for who wants bookmarks, then what changes.
    async fn begin_with_state(&mut self, namespace: &Str) -> Result<(), Status> {
        let collection = self.resource.collection()?;
        let snapshot = collection.snapshot(self.cache.visible());
        work::ahead(list::survey(snapshot.within(namespace, ""), &self.selection, 0)).await;
        if self.selection.is_by_content() && !self.selection.is_of_view() {
            list::index(snapshot.within(namespace, ""), &self.resource).await;
        }
        let all = snapshot.within(namespace, "");
        self.waiting = if self.selection.is_of_view() {
            let named = all.filter(|object| self.selection.is_named(object)).cloned().collect();
            let seen = self.resource.answered(named).await?.into_iter();
            seen.filter(|o| self.selection.matches(o)).map(Event::Added).collect()
        } else {
            all.filter(|o| self.selection.matches(o)).cloned().map(Event::Added).collect()
        };
        collection.reads.initial_events.add(self.waiting.len() as u64);
        if self.bookmarks {
            self.waiting.push(Event::Bookmark { revision: snapshot.revision, initial_end: true });
        }
        self.after = snapshot.revision;
        self.cursor = Some(Cursor::at(collection.clone(), snapshot.next));
        Ok(())
    }

    /// Only what changed after a revision; an ERROR event where that is no longer known (WATCH-06).
    fn begin_after(&mut self, since: Revision) -> Result<(), Status> {
        self.after = since;
        match Cursor::after(self.resource.collection()?.clone(), since) {
            Ok(cursor) => self.cursor = Some(cursor),
            Err(Lagged) => {
                let current = self.cache.visible();
                let message = format!("too old resource version: {since} ({current})");
                self.waiting = vec![Event::Error(Box::new(Status::expired(message)))];
            }
        }
        Ok(())
    }

    /// The next events, at least one, in order; waits until there are some. After an
    /// [`Event::Error`] nothing follows: this then waits for ever. `None` when the resource is defined
    /// in another way, or no longer: the watch is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        if self.waiting.is_empty() {
            let resource = self.resource.clone();
            tokio::select! {
                biased;
                events = self.changes() => self.waiting = events,
                () = resource.retired() => return None,
            }
        }
        match self.answered().await {
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

    /// The pending events, with objects converted to the resource's version.
    async fn answered(&self) -> Result<Vec<Event>, Status> {
        let mut events = self.waiting.clone();
        if self.resource.converter().is_none() {
            return Ok(events);
        }
        let mut objects: Vec<_> = events.iter_mut().filter_map(Event::object_mut).collect();
        let stored = objects.iter().map(|object| Arc::clone(object)).collect();
        let answered = self.resource.answered(stored).await?;
        for (object, answered) in objects.iter_mut().zip(answered) {
            **object = answered;
        }
        Ok(events)
    }

    /// The next events, with objects in the stored form.
    async fn changes(&mut self) -> Vec<Event> {
        loop {
            let Some(cursor) = &mut self.cursor else { return std::future::pending().await };
            if self.unread.is_empty() {
                match cursor.next().await {
                    Ok(changes) => self.unread = changes,
                    Err(Lagged) => {
                        let collection = self.resource.collection();
                        collection.iter().for_each(|collection| collection.reads.outrun.add(1));
                        self.cursor = None;
                        let status = Status::expired(
                            "The resourceVersion for the provided watch is too old.",
                        );
                        return vec![Event::Error(Box::new(status))];
                    }
                }
            }
            match self.seen().await {
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

    /// Makes of the changes that are not looked at yet what the resource's version shows of them, where
    /// selection goes by that.
    async fn seen(&mut self) -> Result<(), Status> {
        if !self.selection.is_of_view() {
            return Ok(());
        }
        self.unread.retain(|change| self.selection.is_named(&change.object));
        let states = self.unread.iter().flat_map(|c| [Some(&c.object), c.previous.as_ref()]);
        let states = states.flatten().cloned().collect();
        let mut seen = self.resource.answered(states).await?.into_iter();
        for change in &mut self.unread {
            for state in [Some(&mut change.object), change.previous.as_mut()].into_iter().flatten()
            {
                *state = seen.next().unwrap_or_else(|| state.clone());
            }
        }
        Ok(())
    }

    /// A bookmark for what has been told so far, where the client wants bookmarks and nothing is
    /// waiting to be told: the handler calls this by its own clock, about once a minute (BM-01).
    pub fn bookmark(&self) -> Option<Revision> {
        let nothing_waits = self.waiting.is_empty() && self.unread.is_empty();
        let cursor = self.cursor.as_ref().filter(|_| self.bookmarks && nothing_waits)?;
        // Read first: everything up to here is in the log by the time that the cursor is looked at.
        let visible = self.cache.visible();
        cursor.caught_up().then(|| visible.max(self.after))
    }

    /// What a change is to this watcher: entering the selection is an addition, leaving it a deletion
    /// (WATCH-09).
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
                Some(Event::Deleted(Arc::new(self.moved(previous, object.revision))))
            }
            (false, false) => None,
        }
    }

    /// An object as it was, at the revision of the change by which it left the selection (OAS-16).
    fn moved(&self, object: &Object, revision: Revision) -> Object {
        // Of one that cannot be read, at least it is told which it is that goes.
        let mut tree = object.tree().unwrap_or_else(|_| object.identity(&self.resource));
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
