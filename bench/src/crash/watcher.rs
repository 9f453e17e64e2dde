//! A watcher that resumes from its last version after each restart.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::history::History;
use super::writer::{is_complete, sequence};
use super::{NAMESPACE, require, resource_version};
use crate::server::Server;

/// An event of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    kind: String,
    sequence: u64,
    version: u64,
}

/// A watcher and all its events.
pub(super) struct Watcher {
    /// The version of the last event, from which it resumes.
    last: u64,
    events: BTreeMap<String, Vec<Event>>,
}

impl Watcher {
    /// A watcher of all changes after a version.
    pub(super) fn from(version: u64) -> Self {
        Self { last: version, events: BTreeMap::new() }
    }

    pub(super) fn events(&self) -> usize {
        self.events.values().map(Vec::len).sum()
    }

    /// Watches up to the version `end`, or until the server exits.
    pub(super) async fn follow(&mut self, server: &Server, end: Option<u64>) -> Result<()> {
        let path = format!(
            "/api/v1/namespaces/{NAMESPACE}/configmaps?watch=1&resourceVersion={}",
            self.last
        );
        let Ok(mut connection) = server.connect().await else { return server_exited(end) };
        let opened = connection.open_watch(server.call("GET", &path, "", "").bytes()).await;
        if end.is_some() {
            opened?;
        } else if opened.is_err() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        while end.is_none_or(|end| self.last < end) {
            match connection.chunk(&mut bytes).await {
                Ok(true) => self.add_lines(&mut bytes)?,
                Ok(false) | Err(_) => return server_exited(end),
            }
        }
        Ok(())
    }

    fn add_lines(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let Some(end) = memchr::memrchr(b'\n', bytes) else { return Ok(()) };
        for line in bytes[..end].split(|byte| *byte == b'\n') {
            self.add(&serde_json::from_slice(line).context("an event is incomplete")?)?;
        }
        bytes.drain(..=end);
        Ok(())
    }

    fn add(&mut self, event: &Value) -> Result<()> {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ERROR" {
            bail!("a watch from version {} received {}", self.last, event["object"]);
        }
        let object = &event["object"];
        let version = resource_version(object).context("an event without version")?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        require(version > self.last, || {
            format!("after version {} came {kind} of {name} at version {version}", self.last)
        })?;
        self.last = version;
        if !name.starts_with('w') {
            return Ok(()); // not an object of a writer
        }
        require(is_complete(object), || format!("an event's object is incomplete: {object}"))?;
        let sequence = sequence(object).unwrap_or_default();
        let event = Event { kind: kind.to_owned(), sequence, version };
        self.events.entry(name.to_owned()).or_default().push(event);
        Ok(())
    }

    /// Compares the events with the writers' histories: each change has one event, in order.
    pub(super) fn compare(&self, histories: &[&History]) -> Result<()> {
        for (name, changes) in histories.iter().flat_map(|history| &history.changes) {
            let events = self.events.get(name).map_or(&[][..], Vec::as_slice);
            for (index, change) in changes.iter().enumerate() {
                let fits = |event: &Event| {
                    event.kind == change.verb.event()
                        && event.sequence == change.sequence
                        && change.version.is_none_or(|version| version == event.version)
                };
                require(events.get(index).is_some_and(fits), || {
                    format!(
                        "{name}: change {index} is {change:?}, its event is {:?}",
                        events.get(index)
                    )
                })?;
            }
            require(events.len() == changes.len(), || {
                format!("{name}: {} changes, {} events", changes.len(), events.len())
            })?;
        }
        Ok(())
    }
}

/// The server has exited, which is an error if the watcher had to reach a version.
fn server_exited(end: Option<u64>) -> Result<()> {
    match end {
        None => Ok(()),
        Some(end) => bail!("the watch ended before version {end}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::history::{Change, Verb, filler};
    use super::*;

    fn event(kind: &str, sequence: u64, version: u64) -> Value {
        let data = json!({"sequence": sequence.to_string(), "filler": filler(sequence)});
        let metadata = json!({"name": "w0-1", "resourceVersion": version.to_string()});
        json!({"type": kind, "object": {"metadata": metadata, "data": data}})
    }

    /// Checks these events, as kind, content and version.
    fn check(events: &[(&str, u64, u64)]) -> Result<()> {
        let mut history = History::default();
        history.add("w0-1", Change { verb: Verb::Create, sequence: 1, version: Some(10) });
        history.add("w0-1", Change { verb: Verb::Update, sequence: 2, version: Some(12) });
        history.add("w0-1", Change { verb: Verb::Delete, sequence: 2, version: None });
        let mut watcher = Watcher::from(9);
        for (kind, sequence, version) in events {
            watcher.add(&event(kind, *sequence, *version))?;
        }
        watcher.compare(&[&history])
    }

    #[test]
    fn watchers_see_every_change_once_in_order() {
        let (add, change, delete) = (("ADDED", 1, 10), ("MODIFIED", 2, 12), ("DELETED", 2, 13));
        assert!(check(&[add, change, delete]).is_ok());
        for wrong in [
            &[add, change][..],                       // one is missing
            &[add, delete],                           // one in the middle is missing
            &[add, change, delete, ("ADDED", 3, 14)], // one has no change
            &[add, add, change, delete],              // one is repeated
            &[change, add, delete],                   // they are out of order
            &[add, ("MODIFIED", 3, 12), delete],      // the content differs
            &[add, ("MODIFIED", 2, 11), delete],      // the version differs
            &[add, ("ADDED", 2, 12), delete],         // the type differs
            &[("ADDED", 1, 9), change, delete],       // one is not newer than the start
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
        let mut incomplete = event("ADDED", 1, 10);
        incomplete["object"]["data"]["filler"] = json!("00");
        assert!(Watcher::from(9).add(&incomplete).is_err());
        let expired = json!({"type": "ERROR", "object": {"code": 410}});
        assert!(Watcher::from(9).add(&expired).is_err());
    }
}
