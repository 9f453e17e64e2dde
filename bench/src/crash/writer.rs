//! A client that writes until the server is killed, and records which writes were acknowledged.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::history::{Change, History, Uncertain, Verb, filler};
use super::{NAMESPACE, Random, require, resource_version};
use crate::call::Call;
use crate::server::Server;

/// The number of objects of each writer.
const OBJECTS: usize = 8;

/// A writer. No other writer changes its objects.
pub(super) struct Writer {
    number: usize,
    random: Random,
    sequence: u64,
    history: History,
    /// The write that was in flight when the server was killed.
    in_flight: Option<Uncertain>,
    acknowledged: usize,
    uncertain: usize,
}

impl Writer {
    pub(super) fn new(number: usize, seed: u64) -> Self {
        Self {
            number,
            random: Random::new(seed),
            sequence: 0,
            history: History::default(),
            in_flight: None,
            acknowledged: 0,
            uncertain: 0,
        }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    pub(super) fn uncertain(&self) -> usize {
        self.uncertain
    }

    /// Writes until the server does not answer.
    pub(super) async fn write_until_killed(&mut self, server: &Server) -> Result<()> {
        let Ok(mut connection) = server.connect().await else { return Ok(()) };
        let mut body = Vec::new();
        loop {
            let (call, intent) = self.choose(server);
            body.clear();
            let Ok(answer) = connection.exchange(call.bytes(), Some(&mut body)).await else {
                self.in_flight = Some(intent);
                return Ok(());
            };
            match answer.status {
                200 | 201 => {
                    let version = resource_version(&serde_json::from_slice(&body)?);
                    self.acknowledged += 1;
                    self.history.add(&intent.name, Change { version, ..intent.change });
                }
                429 => tokio::task::yield_now().await,
                status => bail!("{} {status}: {}", intent.name, String::from_utf8_lossy(&body)),
            }
        }
    }

    /// Chooses the next change at random.
    fn choose(&mut self, server: &Server) -> (Call, Uncertain) {
        let name = format!("w{}-{}", self.number, self.random.below(OBJECTS));
        let existing = self.history.existing(&name);
        self.sequence += 1;
        let sequence = self.sequence;
        let collection = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        let path = format!("{collection}/{name}");
        let data = json!({"sequence": sequence.to_string(), "filler": filler(sequence)});
        let mut object = json!({"metadata": {"name": name}, "data": data});
        let uncertain = |verb, sequence| Uncertain {
            name: name.clone(),
            change: Change { verb, sequence, version: None },
        };
        let Some(last) = existing else {
            let call = server.call("POST", &collection, "application/json", &object.to_string());
            return (call, uncertain(Verb::Create, sequence));
        };
        match self.random.below(8) {
            0 => (server.call("DELETE", &path, "", ""), uncertain(Verb::Delete, last.sequence)),
            1..=3 => {
                let patch = json!({"data": data}).to_string();
                let call = server.call("PATCH", &path, "application/merge-patch+json", &patch);
                (call, uncertain(Verb::Update, sequence))
            }
            kind => {
                if let Some(version) = last.version.filter(|_| kind > 5) {
                    object["metadata"]["resourceVersion"] = json!(version.to_string());
                }
                let call = server.call("PUT", &path, "application/json", &object.to_string());
                (call, uncertain(Verb::Update, sequence))
            }
        }
    }

    /// Compares the server's objects, listed at `version`, with the acknowledged writes.
    pub(super) fn compare(&mut self, objects: &BTreeMap<&str, &Value>, version: u64) -> Result<()> {
        let highest = self.history.highest();
        require(version >= highest, || {
            format!("the server is at version {version}, but had acknowledged {highest}")
        })?;
        if let Some(in_flight) = self.in_flight.take() {
            self.uncertain += 1;
            self.resolve(&in_flight, objects.get(in_flight.name.as_str()).copied());
        }
        for index in 0..OBJECTS {
            let name = format!("w{}-{index}", self.number);
            let object = objects.get(name.as_str()).copied();
            match (self.history.existing(&name), object) {
                (None, None) => {}
                (None, Some(_)) => bail!("{name} exists, but was deleted or never created"),
                (Some(last), None) => {
                    bail!("{name} is lost; its last acknowledged change: {last:?}")
                }
                (Some(last), Some(object)) => compare_one(&name, last, object)?,
            }
        }
        Ok(())
    }

    /// Adds the write in flight to the history if it was committed.
    fn resolve(&mut self, in_flight: &Uncertain, object: Option<&Value>) {
        let Uncertain { name, change } = in_flight;
        let has_it = object.is_some_and(|object| sequence(object) == Some(change.sequence));
        let happened = match change.verb {
            Verb::Create | Verb::Update => has_it,
            Verb::Delete => object.is_none(),
        };
        if happened {
            let version = object.and_then(resource_version);
            self.history.add(name, Change { version, ..*change });
        }
    }
}

/// The sequence number of an object's content.
pub(super) fn sequence(object: &Value) -> Option<u64> {
    object["data"]["sequence"].as_str()?.parse().ok()
}

/// Whether an object's content is complete.
pub(super) fn is_complete(object: &Value) -> bool {
    let expected = sequence(object).map(filler);
    expected.is_some() && object["data"]["filler"].as_str() == expected.as_deref()
}

fn compare_one(name: &str, last: Change, object: &Value) -> Result<()> {
    let found = sequence(object);
    require(found == Some(last.sequence), || {
        format!("{name} has content {found:?}, but content {} was acknowledged", last.sequence)
    })?;
    require(is_complete(object), || format!("{name} is incomplete: {object}"))?;
    let version = resource_version(object);
    require(last.version.is_none() || last.version == version, || {
        format!("{name} has version {version:?}, but {:?} was acknowledged", last.version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(sequence: u64, version: u64) -> Value {
        let data = json!({"sequence": sequence.to_string(), "filler": filler(sequence)});
        json!({"metadata": {"resourceVersion": version.to_string()}, "data": data})
    }

    /// Checks the server's object and version against a writer that created content 1 at version 10
    /// and updated it to content 2 at version 12, with `in_flight` unanswered. Returns the number
    /// of changes that the writer then knows.
    fn check(in_flight: Option<Verb>, object: Option<&Value>, version: u64) -> Result<usize> {
        let mut writer = Writer::new(0, 1);
        for (verb, sequence, version) in [(Verb::Create, 1, 10), (Verb::Update, 2, 12)] {
            writer.history.add("w0-1", Change { verb, sequence, version: Some(version) });
        }
        writer.in_flight = in_flight.map(|verb| {
            let sequence = if verb == Verb::Delete { 2 } else { 3 };
            Uncertain { name: "w0-1".to_owned(), change: Change { verb, sequence, version: None } }
        });
        writer.compare(&object.map(|object| ("w0-1", object)).into_iter().collect(), version)?;
        Ok(writer.history.changes["w0-1"].len())
    }

    #[test]
    fn a_lost_or_changed_write_is_detected() {
        let (survivor, next) = (object(2, 12), object(3, 13));
        assert_eq!(check(None, Some(&survivor), 12).unwrap(), 2);
        // The write in flight may be committed or not.
        assert_eq!(check(Some(Verb::Update), Some(&survivor), 12).unwrap(), 2);
        assert_eq!(check(Some(Verb::Update), Some(&next), 13).unwrap(), 3);
        assert_eq!(check(Some(Verb::Delete), Some(&survivor), 12).unwrap(), 2);
        assert_eq!(check(Some(Verb::Delete), None, 13).unwrap(), 3);

        let mut incomplete = survivor.clone();
        incomplete["data"]["filler"] = json!("000000000002.");
        assert!(check(None, None, 12).is_err(), "lost");
        assert!(check(None, Some(&object(1, 10)), 12).is_err(), "older content");
        assert!(check(None, Some(&next), 13).is_err(), "content that no client wrote");
        assert!(check(None, Some(&incomplete), 12).is_err(), "incomplete");
        assert!(check(None, Some(&object(2, 13)), 13).is_err(), "another version");
        assert!(check(None, Some(&survivor), 11).is_err(), "the server's version decreased");
    }
}
