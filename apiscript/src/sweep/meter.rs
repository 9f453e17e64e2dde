//! Measures the server's processor time for requests, and the delay of other requests.
//!
//! Wall-clock time means little on a machine with other work. The processor time is the server's
//! `process_cpu_seconds_total`, read before and after a request, while only `/livez` is requested
//! besides.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use parking_lot::Mutex;

use crate::Target;
use crate::http::{Connection, Request, Response};

/// The pause between two requests of `/livez`.
const PERIOD: Duration = Duration::from_millis(20);
/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A response.
pub(super) struct Answer {
    /// 0 if the request had no response.
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// The server's processor time, on all processors.
    pub(super) processor: Duration,
}

/// Sends requests one after another.
pub(super) struct Meter<'t> {
    target: &'t Target,
    connection: Option<Connection>,
}

impl<'t> Meter<'t> {
    pub(super) const fn new(target: &'t Target) -> Self {
        Self { target, connection: None }
    }

    /// Sends a request and measures its cost.
    pub(super) fn measure(&mut self, request: &Request) -> Result<Answer> {
        let before = self.processor()?;
        // A request that is too large may cost the connection; the next line notices a dead server.
        let response = self.send(request).unwrap_or_default();
        let processor = self.processor()?.saturating_sub(before);
        Ok(Answer { status: response.head.status, body: response.body, processor })
    }

    /// Sends a request without measuring its cost.
    pub(super) fn send(&mut self, request: &Request) -> Result<Response> {
        let mut connection = match self.connection.take().filter(Connection::is_idle) {
            Some(connection) => connection,
            None => self.target.connect(false)?,
        };
        connection.set_read_timeout(Some(TIMEOUT))?;
        let mut request = request.clone();
        request.headers.extend(self.target.authorization());
        let response = connection.exchange(&request)?;
        self.connection = Some(connection);
        Ok(response)
    }

    fn processor(&mut self) -> Result<Duration> {
        let response = self.send(&get("/metrics"))?;
        let text = String::from_utf8_lossy(&response.body);
        let mut lines = text.lines().filter_map(|l| l.strip_prefix("process_cpu_seconds_total "));
        let seconds = lines.next().context("the server does not tell its processor time")?;
        Ok(Duration::try_from_secs_f64(seconds.trim().parse()?)?)
    }
}

/// A GET of a path.
pub(super) fn get(path: &str) -> Request {
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    Request { method: "GET".to_owned(), target: path.to_owned(), headers, body: None }
}

/// Requests `/livez` again and again.
pub(super) struct Bystander {
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    during: String,
    worst: Duration,
    worst_during: String,
    error: Option<anyhow::Error>,
}

impl Bystander {
    pub(super) fn new() -> Self {
        Self { stop: AtomicBool::new(false), seen: Mutex::default() }
    }

    /// Sets the name of the current request.
    pub(super) fn note(&self, what: &str) {
        what.clone_into(&mut self.seen.lock().during);
    }

    /// Sends requests until it is stopped.
    pub(super) fn watch(&self, target: &Target) {
        if let Err(error) = self.try_watch(target) {
            self.seen.lock().error = Some(error);
        }
    }

    fn try_watch(&self, target: &Target) -> Result<()> {
        let mut meter = Meter::new(target);
        while !self.stop.load(Ordering::Relaxed) {
            let during = self.seen.lock().during.clone();
            let start = Instant::now();
            let response = meter.send(&get("/livez"))?;
            if response.head.status != 200 {
                bail!("/livez answered {} during {during}", response.head.status);
            }
            let mut seen = self.seen.lock();
            if start.elapsed() > seen.worst {
                seen.worst = start.elapsed();
                seen.worst_during = during;
            }
            drop(seen);
            thread::sleep(PERIOD);
        }
        Ok(())
    }

    /// Stops it; returns the longest response time, and the request at that time.
    pub(super) fn finish(&self) -> Result<(Duration, String)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = self.seen.lock();
        match seen.error.take() {
            Some(error) => Err(error),
            None => Ok((seen.worst, seen.worst_during.clone())),
        }
    }
}
