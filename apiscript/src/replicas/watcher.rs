//! A watcher: receives all events of the collection in order, from one server or from all in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::history::Change;
use super::{LAST, World};
use crate::http::Request;
use crate::watch::{Framing, Watch};

/// After so many changes a rotating watcher changes to the next server.
const STAY: usize = 25;

pub(super) struct Watcher<'a> {
    world: &'a World<'a>,
    /// The number of the server to watch. If there is no such server, it watches all in turn. If
    /// requests may fail, it changes to the next server after each watch.
    number: usize,
    since: u64,
}

impl<'a> Watcher<'a> {
    pub(super) const fn new(world: &'a World<'a>, number: usize, since: u64) -> Self {
        Self { world, number, since }
    }

    /// Watches until the last object arrives, for a limited time after all clients have finished.
    pub(super) fn run(
        mut self,
        is_over: &AtomicBool,
        timeout: Duration,
    ) -> Result<(String, Vec<Change>)> {
        let goes_around = self.number >= self.world.servers.len();
        let name = match goes_around {
            true => "the watcher that goes around".to_owned(),
            false => format!("the watcher of {}", self.world.servers[self.number].server()),
        };
        let mut changes = Vec::new();
        let mut deadline = None;
        let mut server = self.number % self.world.servers.len();
        loop {
            match self.listen(server, goes_around, &mut changes) {
                Ok(true) => return Ok((name, changes)),
                Ok(false) => {}
                Err(why) if self.world.may_fail => self.world.print(&format!("{name}: {why:#}")),
                Err(why) => return Err(why.context(name)),
            }
            if is_over.load(Ordering::SeqCst) {
                let deadline = deadline.get_or_insert_with(|| Instant::now() + timeout);
                if Instant::now() > *deadline {
                    bail!("{name} was not sent the last change: {} changes", changes.len());
                }
            }
            if goes_around || self.world.may_fail {
                server = (server + 1) % self.world.servers.len();
            }
        }
    }

    /// Watches one server for a while; `true` when the last object has arrived.
    fn listen(
        &mut self,
        server: usize,
        leaves_soon: bool,
        changes: &mut Vec<Change>,
    ) -> Result<bool> {
        let target = &self.world.servers[server];
        let mut connection = target.connect(false)?;
        let path = self.world.path();
        let since = self.since;
        let request = Request {
            method: "GET".to_owned(),
            target: format!("{path}?watch=true&resourceVersion={since}&timeoutSeconds=5"),
            headers: target.authorization().into_iter().collect(),
            body: None,
        };
        let head = connection.start(&request)?;
        if head.status != 200 {
            bail!("a watch at {since}: {}", head.status);
        }
        let watch = Watch::read(connection, Framing::Lines)?;
        let mut received = 0;
        while !leaves_soon || received < STAY {
            let Some(event) = watch.next(Instant::now() + Duration::from_secs(30))? else { break };
            let Some(change) = Change::of(&event) else { bail!("a watch at {since}: {event}") };
            self.since = change.revision;
            received += 1;
            let is_last = change.name == LAST;
            changes.push(change);
            if is_last {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
