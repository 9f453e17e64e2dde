//! A request from the parsing of its head to the last byte of its response: the counts, the permit
//! and the seats that it holds.

use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use parking_lot::Mutex;
use pintle_trace::{Layer, Timing};

use crate::api::Api;
use crate::audit::Record;
use crate::body::Guard;
use crate::fairness::{Class, Seat, WatchGuard};
use crate::limits::Permit;
use crate::metrics::{Key, Route, Served};
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::request_log::RequestLog;
use crate::target::Found;

/// The counts, permit and seats of a request while it is handled and its response is sent.
pub(crate) struct InProgress {
    api: Arc<Api>,
    began: Instant,
    /// The metrics of its route, once the route is known; `None` for a request without a route.
    route: Option<Arc<Route>>,
    /// The gauge of long-running requests that it is counted in.
    long_running: Option<Arc<Route>>,
    /// The parameter `fieldValidation`.
    field_validation: Option<String>,
    pub(crate) code: u16,
    /// The time that the request spends in each layer.
    pub(crate) timing: Arc<Timing>,
    /// When the response was ready to be sent.
    pub(crate) answered: Option<Instant>,
    sent_bytes: u64,
    /// The audit record, if the request is audited.
    pub(crate) record: Option<Arc<Record>>,
    /// The request's log line, if requests are logged.
    pub(crate) log: Option<Box<RequestLog>>,
    /// Given back when the handler returns; with a long response when the response has been sent,
    /// and with a session when the session ends.
    pub(crate) permit: Option<Permit>,
    /// The flow schema and priority level, where priority and fairness are on.
    pub(crate) class: Option<Arc<Class>>,
    /// Given back like the permit; a watch gives its seats back when its initial events are
    /// written.
    pub(crate) seat: Mutex<Option<Seat>>,
    /// Counts a watch among those that make a write more expensive.
    pub(crate) watch: Option<WatchGuard>,
}

impl InProgress {
    /// A request whose head has just been parsed.
    pub(crate) fn new(api: &Arc<Api>, query: &Query, began: Instant) -> Self {
        Self {
            api: api.clone(),
            began,
            route: None,
            long_running: None,
            field_validation: query.get("fieldValidation").map(str::to_owned),
            code: 0,
            timing: Arc::default(),
            answered: None,
            sent_bytes: 0,
            record: None,
            log: None,
            permit: None,
            class: None,
            seat: Mutex::default(),
            watch: None,
        }
    }

    /// Sets the metrics' route, when the request's destination is known.
    pub(crate) fn set_route(
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

    /// Counts the request as long-running from now on.
    pub(crate) fn runs_long(&self) {
        self.long_running.iter().for_each(|route| route.runs_long(1));
    }

    /// Counts the request as rejected by a limit.
    pub(crate) fn was_rejected(&self) {
        self.route.iter().for_each(|route| route.rejected.add(1));
    }

    /// Counts the request as timed out.
    pub(crate) fn timed_out(&self) {
        self.route.iter().for_each(|route| route.timed_out.add(1));
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        drop(self.permit.take());
        drop(self.seat.get_mut().take());
        if let Some(answered) = self.answered {
            self.timing.spent(Layer::Sending, answered);
        }
        self.record.iter().for_each(|record| record.ended());
        self.long_running.iter().for_each(|route| route.runs_long(-1));
        let took = self.began.elapsed();
        self.log.iter().for_each(|log| log.write(self.code, took, &self.timing));
        if let (Some(traces), Some(trace)) = (&self.api.traces, self.timing.trace()) {
            traces.export(trace, self.code);
        }
        let waited = self.timing.webhooks();
        let Some(route) = &self.route else { return };
        route.answered(&Served { code: self.code, took, waited, body_bytes: self.sent_bytes });
        if let Some(value) = &self.field_validation {
            self.api.metrics.field_validation(value, took);
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
