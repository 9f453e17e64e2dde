//! A request from when it is read to when its answer has been sent: what it is counted as, and what it holds.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::request::Parts;
use parking_lot::Mutex;
use pintle_measure::Counter;

use crate::api::Api;
use crate::audit::Record;
use crate::body::Guard;
use crate::fairness::{Class, Seat, WatchGuard};
use crate::limits::Permit;
use crate::metrics::{Answered, Key, Route};
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::request_log::RequestLog;
use crate::target::Found;

/// What is counted and held while a request is worked on and its answer is sent.
pub(crate) struct InProgress {
    api: Arc<Api>,
    began: Instant,
    /// What it is counted as, once it is known where it goes; nothing for what has no route.
    route: Option<Arc<Route>>,
    /// What it is counted as while it is open.
    long_running: Option<Arc<Route>>,
    /// What it says of unknown fields.
    field_validation: Option<String>,
    pub(crate) code: u16,
    /// How long it waited for webhooks, in nanoseconds; nothing where it asks none.
    pub(crate) waited: OnceLock<Arc<Counter>>,
    sent_bytes: u64,
    /// What is recorded of it, if it is audited.
    pub(crate) record: Option<Arc<Record>>,
    /// Its line of the log, if requests are logged.
    pub(crate) log: Option<Box<RequestLog>>,
    /// Returned when the handler has returned; for a long answer, when the answer was sent.
    pub(crate) permit: Option<Permit>,
    /// What it is by the flow schemas, where those count.
    pub(crate) class: Option<Arc<Class>>,
    /// Returned likewise; those of a watch, when its initial events are made.
    pub(crate) seat: Mutex<Option<Seat>>,
    /// A watch that writes know of.
    pub(crate) watch: Option<WatchGuard>,
}

impl InProgress {
    /// A request that has just been read.
    pub(crate) fn new(api: &Arc<Api>, query: &Query, began: Instant) -> Self {
        Self {
            api: api.clone(),
            began,
            route: None,
            long_running: None,
            field_validation: query.get("fieldValidation").map(str::to_owned),
            code: 0,
            waited: OnceLock::new(),
            sent_bytes: 0,
            record: None,
            log: None,
            permit: None,
            class: None,
            seat: Mutex::default(),
            watch: None,
        }
    }

    /// It is known where the request goes, and so what it is counted as.
    pub(crate) fn take_route(
        &mut self,
        found: Option<&Found>,
        info: &RequestInfo,
        head: &Parts,
        query: &Query,
    ) {
        let requests = &self.api.metrics.requests;
        let (Some(found), Some(named)) = (found, &info.resource) else {
            self.route = requests.of_path(&info.path);
            return;
        };
        let resource = &found.target.resource;
        let key = Key::of(info, named, &head.method, &head.headers, query);
        self.route = Some(requests.route(resource, &key));
        if info.long_running() {
            let key = key.while_open(info, named);
            self.long_running = Some(requests.route(resource, &key));
        }
    }

    /// It runs long from now on.
    pub(crate) fn runs_long(&self) {
        self.long_running.iter().for_each(|route| route.runs_long(1));
    }

    /// The request got no permit.
    pub(crate) fn was_rejected(&self) {
        self.route.iter().for_each(|route| route.rejected.add(1));
    }

    /// The request timed out.
    pub(crate) fn timed_out(&self) {
        self.route.iter().for_each(|route| route.timed_out.add(1));
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        drop(self.permit.take());
        drop(self.seat.get_mut().take());
        self.record.iter().for_each(|record| record.ended());
        self.long_running.iter().for_each(|route| route.runs_long(-1));
        let waited = self.waited.get().map_or(0, |waited| waited.get());
        let waited = Duration::from_nanos(waited);
        self.log.iter().for_each(|log| log.write(self.code, waited));
        let Some(route) = &self.route else { return };
        let took = self.began.elapsed();
        route.answered(&Answered { code: self.code, took, waited, body_bytes: self.sent_bytes });
        if let Some(said) = &self.field_validation {
            self.api.metrics.field_validation(said, took);
        }
    }
}

impl Guard for InProgress {
    fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    fn broke_off(&mut self) {
        self.route.iter().for_each(|route| route.aborted.add(1));
    }
}
