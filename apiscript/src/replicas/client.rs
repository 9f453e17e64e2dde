//! A client: sends random requests to random servers, and records the results.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::history::{Answer, Outcome, revision, writer};
use super::{BROKEN_PAUSE, LAST, TIMEOUT, World};
use crate::http::{Connection, Request, Response};
use crate::random::Random;

/// The most objects.
const NAMES: usize = 12;
/// After this time without a response a request has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct Client<'a> {
    world: &'a World<'a>,
    random: Random,
    number: usize,
    connections: HashMap<usize, Connection>,
    /// The revisions of objects as this client last saw them.
    seen: HashMap<String, u64>,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Get,
    Replace,
    Merge,
    Delete,
    List,
    Pages,
}

/// More creates than deletes, so that objects exist.
const VERBS: [Verb; 11] = [
    Verb::Create,
    Verb::Create,
    Verb::Get,
    Verb::Get,
    Verb::Replace,
    Verb::Replace,
    Verb::Merge,
    Verb::Merge,
    Verb::Delete,
    Verb::List,
    Verb::Pages,
];

impl<'a> Client<'a> {
    pub(super) fn new(world: &'a World<'a>, seed: u64, number: usize) -> Self {
        let random = Random::of(seed, number as u64);
        Self { world, random, number, connections: HashMap::new(), seen: HashMap::new() }
    }

    pub(super) fn run(mut self, requests: usize) -> Result<Vec<Answer>> {
        (0..requests).map(|count| self.ask(count)).collect()
    }

    fn ask(&mut self, count: usize) -> Result<Answer> {
        let verb = *self.random.pick(&VERBS);
        let name = format!("object-{}", self.random.below(NAMES));
        let server = self.random.below(self.world.servers.len());
        let writer = format!("{}/{count}", self.number);
        let newest_before = self.world.newest.load(Ordering::SeqCst);
        let began = self.world.tick();
        let outcome = match self.outcome(verb, server, &name, &writer) {
            Ok(outcome) => outcome,
            Err(_) if self.world.may_fail => {
                self.connections.clear();
                std::thread::sleep(BROKEN_PAUSE);
                Outcome::Unknown { writer: writer.clone() }
            }
            Err(why) => return Err(why.context(format!("{writer}: {verb:?} {name}"))),
        };
        if let Outcome::State { revision, .. } | Outcome::List { revision, .. } = &outcome {
            self.world.newest.fetch_max(*revision, Ordering::SeqCst);
        }
        let ended = self.world.tick();
        let request =
            format!("{writer}: {verb:?} {name} by {}", self.world.servers[server].server());
        let name = if matches!(verb, Verb::List | Verb::Pages) { String::new() } else { name };
        Ok(Answer { request, name, newest_before, began, ended, outcome })
    }

    fn outcome(&mut self, verb: Verb, server: usize, name: &str, writer: &str) -> Result<Outcome> {
        let all = self.world.path();
        let one = format!("{all}/{name}");
        let expected = self.seen.get(name).copied().unwrap_or(1);
        let metadata = match verb {
            Verb::Replace => json!({"name": name, "resourceVersion": expected.to_string()}),
            _ => json!({"name": name}),
        };
        let object = json!({"metadata": metadata, "spec": {"holderIdentity": writer}});
        let (method, path, kind) = match verb {
            Verb::Create => ("POST", all, "application/json"),
            Verb::Get => ("GET", one, ""),
            Verb::Replace => ("PUT", one, "application/json"),
            Verb::Merge => ("PATCH", one, "application/merge-patch+json"),
            Verb::Delete => ("DELETE", one, ""),
            Verb::List => return self.list(server, 0),
            Verb::Pages => {
                let limit = 1 + self.random.below(4);
                return self.list(server, limit);
            }
        };
        let body = (!kind.is_empty()).then_some((kind, &object));
        let (status, answer) = self.exchange(server, method, &path, body)?;
        let is_write = !matches!(verb, Verb::Get);
        Ok(match (status, verb) {
            (200, Verb::Delete) => {
                let uid = answer["details"]["uid"].as_str().context("a deletion tells the uid")?;
                Outcome::Deleted { uid: uid.to_owned() }
            }
            (200 | 201, _) => self.state(name, &answer, is_write)?,
            (404, _) => Outcome::Absent,
            (409, Verb::Create) => Outcome::Present,
            (409, Verb::Replace) => Outcome::Conflict { expected },
            _ => bail!("{status} {answer}"),
        })
    }

    fn state(&mut self, name: &str, object: &Value, is_write: bool) -> Result<Outcome> {
        let revision = revision(object).context("an object has a resource version")?;
        self.seen.insert(name.to_owned(), revision);
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        Ok(Outcome::State { revision, writer: writer(object), uid, is_write })
    }

    /// A list in pages of `limit` objects, each page from another server; 0 means a single page.
    fn list(&mut self, server: usize, limit: usize) -> Result<Outcome> {
        let (mut objects, mut token, mut at) = (BTreeMap::new(), String::new(), None);
        for page in 0.. {
            let server = (server + page) % self.world.servers.len();
            let path = format!("{}?limit={limit}&continue={token}", self.world.path());
            let (status, list) = self.exchange(server, "GET", &path, None)?;
            ensure!(status == 200, "page {page}: {status} {list}");
            let revision_of_page = revision(&list).context("a list has a resource version")?;
            let at = *at.get_or_insert(revision_of_page);
            ensure!(at == revision_of_page, "page {page} is of {revision_of_page}, not of {at}");
            for object in list["items"].as_array().into_iter().flatten() {
                let name = object["metadata"]["name"].as_str().context("an object has a name")?;
                let revision = revision(object).context("an object has a resource version")?;
                objects.insert(name.to_owned(), revision);
            }
            list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                return Ok(Outcome::List { revision: at, objects });
            }
        }
        bail!("a list without end")
    }

    fn exchange(
        &mut self,
        server: usize,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<(u16, Value)> {
        let target = &self.world.servers[server];
        let mut headers: Vec<_> = target.authorization().into_iter().collect();
        headers.extend(body.map(|(kind, _)| ("Content-Type".to_owned(), kind.to_owned())));
        let body = body.map(|(_, body)| body.to_string().into_bytes());
        let request = Request { method: method.to_owned(), target: path.to_owned(), headers, body };
        let mut connection = match self.connections.remove(&server) {
            Some(connection) if connection.is_idle() => connection,
            _ => target.connect(false)?,
        };
        connection.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        let Response { head, body } = connection.exchange(&request)?;
        self.connections.insert(server, connection);
        Ok((head.status, serde_json::from_slice(&body)?))
    }
}

/// Writes the object that marks the end for watchers.
pub(super) fn write_last(world: &World<'_>) -> Result<()> {
    let object = json!({"metadata": {"name": LAST}, "spec": {"holderIdentity": LAST}});
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut client = Client::new(world, 0, usize::MAX);
        let body = Some(("application/json", &object));
        let answer = client.exchange(0, "POST", &world.path(), body);
        match answer {
            Ok((201 | 409, _)) => return Ok(()),
            Ok((status, answer)) if Instant::now() > deadline => bail!("{status} {answer}"),
            Err(why) if Instant::now() > deadline => return Err(why),
            Ok(_) | Err(_) if world.may_fail => std::thread::sleep(Duration::from_millis(200)),
            Ok((status, answer)) => bail!("the last object: {status} {answer}"),
            Err(why) => return Err(why),
        }
    }
}
