//! An in-memory model of etcd with random faults: it is slow, loses answers, ends watches, has no
//! space, and is compacted and restored.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_grpc::Code;
use pintle_store::BoxFuture;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::client::{Etcd, Watch};
use crate::error::Error;
use crate::messages::{
    CompactionResponse, Compared, Event, EventType, KeyValue, LeaseGrantResponse, Operation,
    RangeRequest, RangeResponse, ResponseHeader, ResponseOp, StatusResponse, TxnRequest,
    TxnResponse, WatchCreateRequest, WatchResponse,
};

/// Random numbers from a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `end`.
    pub(super) const fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    /// True once in `times`.
    pub(super) const fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// How long a slow request takes.
pub(super) const SLOW: Duration = Duration::from_secs(10);

/// Faults that a test sets, besides the random ones.
#[derive(Default)]
pub(super) struct Faults {
    /// How many further reads of a range of keys fail.
    pub(super) failing_lists: usize,
    /// Whether new watches receive nothing and do not end.
    pub(super) has_mute_watches: bool,
    /// Whether the store's user may not ask for the status.
    pub(super) denies_status: bool,
    /// The TTL of leases that take long to be granted, and then are not.
    pub(super) slow_ttl: Option<i64>,
}

/// The events of each revision.
pub(super) type History = BTreeMap<i64, Vec<Event>>;

/// The database.
pub(super) struct Model {
    state: Mutex<State>,
    /// Notified whenever the revision changes. A `Notify` wakes its waiters in a fixed order,
    /// unlike a `tokio::sync::watch`.
    changed: Notify,
    version: &'static str,
}

struct State {
    random: Random,
    /// Whether random faults happen.
    has_faults: bool,
    faults: Faults,
    header: ResponseHeader,
    compacted: i64,
    keys: BTreeMap<Bytes, KeyValue>,
    history: History,
    /// The histories before each restoration from a backup.
    lost: Vec<History>,
    /// The number of requests that are not yet executed although their answers are lost already.
    delayed: usize,
    /// The number of leases that were requested.
    grants: i64,
}

impl Model {
    /// Creates a database that behaves like a version of etcd.
    pub(super) fn new(seed: u64, version: &'static str) -> Arc<Self> {
        let header = ResponseHeader { cluster_id: 1, member_id: 1, revision: 1, raft_term: 2 };
        let state = State {
            random: Random::new(seed),
            has_faults: true,
            faults: Faults::default(),
            header,
            compacted: 0,
            keys: BTreeMap::new(),
            history: History::new(),
            lost: Vec::new(),
            delayed: 0,
            grants: 0,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), version })
    }

    /// Sets faults.
    pub(super) fn set_faults(&self, set: impl FnOnce(&mut Faults)) {
        set(&mut self.state.lock().faults);
    }

    /// Ends all random faults.
    pub(super) fn stop_faults(&self) {
        self.state.lock().has_faults = false;
    }

    pub(super) fn head(&self) -> i64 {
        self.state.lock().header.revision
    }

    /// Whether some request is still to be executed although its answer is lost.
    pub(super) fn has_delayed(&self) -> bool {
        self.state.lock().delayed > 0
    }

    /// The number of restorations.
    pub(super) fn restorations(&self) -> usize {
        self.state.lock().lost.len()
    }

    /// All histories, the present one last.
    pub(super) fn histories(&self) -> Vec<History> {
        let state = self.state.lock();
        state.lost.iter().chain([&state.history]).cloned().collect()
    }

    /// The present keys.
    pub(super) fn keys(&self) -> Vec<KeyValue> {
        self.state.lock().keys.values().cloned().collect()
    }

    /// Compacts, as another process would.
    pub(super) fn compact_to(&self, revision: i64) -> Result<ResponseHeader, Error> {
        let mut state = self.state.lock();
        if revision > state.header.revision {
            return Err(Error::Future);
        }
        if revision <= state.compacted {
            return Err(Error::Compacted);
        }
        state.compacted = revision;
        Ok(state.header)
    }

    /// Restores a former state that is not compacted, as an operator would.
    pub(super) fn restore(&self, share: u64) {
        let mut state = self.state.lock();
        let at = state.compacted.max(1)
            + (state.header.revision - state.compacted.max(1)) / share.cast_signed();
        state.keys = state.at(at).into_iter().map(|stored| (stored.key.clone(), stored)).collect();
        let retained = state.history.clone().into_iter().filter(|(r, _)| *r <= at).collect();
        let lost = std::mem::replace(&mut state.history, retained);
        state.lost.push(lost);
        state.header.revision = at;
        state.header.raft_term = 1;
        state.header.cluster_id += u64::from(state.random.once_in(2));
        drop(state);
        self.changed.notify_waiters();
    }

    async fn lag(&self, millis_max: u64) {
        let millis = {
            let mut state = self.state.lock();
            if state.has_faults { state.random.below(millis_max) } else { 0 }
        };
        if millis > 0 {
            sleep(Duration::from_millis(millis)).await;
        }
    }

    fn fails(&self, times: u64) -> bool {
        let mut state = self.state.lock();
        state.has_faults && state.random.once_in(times)
    }

    fn apply(&self, request: &TxnRequest) -> TxnResponse {
        let mut state = self.state.lock();
        let response = state.apply(request);
        drop(state);
        self.changed.notify_waiters();
        response
    }
}

impl State {
    fn apply(&mut self, request: &TxnRequest) -> TxnResponse {
        let holds = request.compare.iter().all(|compare| {
            let key = self.keys.get(&compare.key);
            match compare.compared {
                Some(Compared::Version(n)) => key.map_or(0, |key| key.version) == n,
                Some(Compared::ModRevision(n)) => key.map_or(0, |key| key.mod_revision) == n,
                None => false,
            }
        });
        let revision = self.header.revision + 1;
        let (mut events, mut responses) = (Vec::new(), Vec::new());
        for operation in if holds { &request.success } else { &request.failure } {
            let mut range = None;
            match operation.request.as_ref().unwrap() {
                Operation::Put(put) => {
                    let before = self.keys.get(&put.key);
                    let kv = KeyValue {
                        key: put.key.clone(),
                        value: put.value.clone(),
                        mod_revision: revision,
                        create_revision: before.map_or(revision, |kv| kv.create_revision),
                        version: before.map_or(1, |kv| kv.version + 1),
                        lease: put.lease,
                    };
                    self.keys.insert(put.key.clone(), kv.clone());
                    events.push(Event { r#type: EventType::Put as i32, kv });
                }
                Operation::Delete(delete) => {
                    if let Some(before) = self.keys.remove(&delete.key) {
                        let (key, mod_revision) = (before.key, revision);
                        let kv = KeyValue { key, mod_revision, ..KeyValue::default() };
                        events.push(Event { r#type: EventType::Delete as i32, kv });
                    }
                }
                Operation::Range(request) => {
                    let kvs = self.keys.get(&request.key).cloned().into_iter().collect();
                    range = Some(RangeResponse { kvs, ..RangeResponse::default() });
                }
            }
            responses.push(ResponseOp { range });
        }
        if !events.is_empty() {
            self.header.revision = revision;
            self.history.insert(revision, events);
        }
        TxnResponse { header: self.header, succeeded: holds, responses }
    }

    /// The keys at a revision.
    fn at(&self, revision: i64) -> Vec<KeyValue> {
        let mut keys = BTreeMap::new();
        for event in self.history.range(..=revision).flat_map(|(_, events)| events) {
            if event.r#type == EventType::Put as i32 {
                keys.insert(event.kv.key.clone(), event.kv.clone());
            } else {
                keys.remove(&event.kv.key);
            }
        }
        keys.into_values().collect()
    }
}

fn within(key: &Bytes, range: &(Bytes, Bytes)) -> bool {
    match &range.1[..] {
        b"" => *key == range.0,
        b"\0" => *key >= range.0,
        end => *key >= range.0 && key[..] < *end,
    }
}

fn lost<T>() -> Result<T, Error> {
    Err(Error::Lost("the model lost it".to_owned()))
}

fn no_space<T>() -> Result<T, Error> {
    Err(Error::NoSpace("etcdserver: mvcc: database space exceeded".to_owned()))
}

/// The model, as an etcd client.
pub(super) struct Access(pub(super) Arc<Model>);

impl Etcd for Access {
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, Error>> {
        Box::pin(async move {
            self.0.lag(5).await;
            if self.0.fails(40) {
                return lost();
            }
            let response = {
                let mut state = self.0.state.lock();
                if !request.range_end.is_empty() && state.faults.failing_lists > 0 {
                    state.faults.failing_lists -= 1;
                    return lost();
                }
                if request.revision > state.header.revision {
                    return Err(Error::Future);
                }
                if request.revision > 0 && request.revision < state.compacted {
                    return Err(Error::Compacted);
                }
                let mut kvs = match request.revision {
                    0 => state.keys.values().cloned().collect(),
                    at => state.at(at),
                };
                kvs.retain(|kv| within(&kv.key, &(request.key.clone(), request.range_end.clone())));
                let limit = usize::try_from(request.limit).unwrap();
                let more = limit > 0 && kvs.len() > limit;
                if more {
                    kvs.truncate(limit);
                }
                RangeResponse { header: state.header, kvs, more }
            };
            self.0.lag(5).await;
            Ok(response)
        })
    }

    fn txn(&self, request: TxnRequest) -> BoxFuture<'_, Result<TxnResponse, Error>> {
        Box::pin(async move {
            let restorations = self.0.restorations();
            self.0.lag(5).await;
            if self.0.restorations() > restorations {
                return lost(); // etcd was stopped and never executes the transaction
            }
            if self.0.fails(30) {
                return Err(Error::Unreachable("the model is unreachable".to_owned()));
            }
            if self.0.fails(20) {
                return lost(); // and never executed
            }
            if self.0.fails(20) {
                let model = self.0.clone();
                model.state.lock().delayed += 1;
                tokio::spawn(async move {
                    model.lag(2000).await;
                    if model.restorations() == restorations {
                        model.apply(&request);
                    }
                    model.state.lock().delayed -= 1;
                });
                return lost();
            }
            if self.0.fails(40) {
                return no_space(); // without executing it
            }
            let response = self.0.apply(&request);
            self.0.lag(5).await;
            if self.0.restorations() > restorations {
                return lost();
            }
            if self.0.fails(40) {
                return no_space();
            }
            if self.0.fails(20) { lost() } else { Ok(response) }
        })
    }

    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<CompactionResponse, Error>> {
        Box::pin(async move {
            self.0.lag(5).await;
            Ok(CompactionResponse { header: self.0.compact_to(revision)? })
        })
    }

    fn grant(&self, ttl_seconds: i64) -> BoxFuture<'_, Result<LeaseGrantResponse, Error>> {
        Box::pin(async move {
            let (header, id, is_slow) = {
                let mut state = self.0.state.lock();
                state.grants += 1;
                (state.header, state.grants, state.faults.slow_ttl == Some(ttl_seconds))
            };
            if is_slow {
                sleep(SLOW).await;
                return lost();
            }
            Ok(LeaseGrantResponse { header, id })
        })
    }

    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Error>> {
        let state = self.0.state.lock();
        let (header, is_denied) = (state.header, state.faults.denies_status);
        let version = self.0.version.to_owned();
        let status = StatusResponse { header, version, db_size: 1, errors: Vec::new() };
        let message = "etcdserver: permission denied".to_owned();
        let denied = || Err(Error::Refused { code: Code::PERMISSION_DENIED, message });
        Box::pin(std::future::ready(if is_denied { denied() } else { Ok(status) }))
    }

    fn leave_watched(&self) {} // there is one member

    fn watch(&self, create: WatchCreateRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, Error>> {
        Box::pin(async move {
            self.0.lag(20).await;
            if self.0.fails(10) {
                return lost();
            }
            // etcd issues 15271 and 20221: some versions begin before the start revision.
            let early = i64::from(self.0.fails(3)) * 3;
            let (compacted, is_mute) = {
                let state = self.0.state.lock();
                (state.compacted, state.faults.has_mute_watches)
            };
            let next =
                (create.start_revision - early).max(create.start_revision.min(compacted)).max(1);
            let restorations = self.0.restorations();
            let range = (create.key, create.range_end);
            Ok(Box::new(ModelWatch {
                model: self.0.clone(),
                restorations,
                is_mute,
                range,
                next,
                is_created: false,
                progress_wanted: false,
                messages: VecDeque::new(),
            }) as Box<dyn Watch>)
        })
    }
}

struct ModelWatch {
    model: Arc<Model>,
    restorations: usize,
    is_mute: bool,
    range: (Bytes, Bytes),
    next: i64,
    is_created: bool,
    progress_wanted: bool,
    /// Messages that are not read yet.
    messages: VecDeque<WatchResponse>,
}

impl ModelWatch {
    /// The next message, if there is one.
    fn message(&mut self) -> Option<WatchResponse> {
        if let Some(message) = self.messages.pop_front() {
            return Some(message);
        }
        let mut state = self.model.state.lock();
        let header = state.header;
        let empty = WatchResponse { header, ..WatchResponse::default() };
        if !std::mem::replace(&mut self.is_created, true) {
            return Some(WatchResponse { created: true, ..empty });
        }
        // etcd issues 15220 and 17507: old versions report progress too early.
        let is_reached = self.next > header.revision || !self.model.version.starts_with("3.6");
        if self.progress_wanted && is_reached {
            self.progress_wanted = false;
            return Some(empty);
        }
        if self.next < state.compacted {
            let compact_revision = state.compacted;
            return Some(WatchResponse { canceled: true, compact_revision, ..empty });
        }
        while self.next <= header.revision {
            let count = 1 + state.random.below(4).cast_signed();
            let revisions = self.next..(self.next + count).min(header.revision + 1);
            self.next = revisions.end;
            let mut events: Vec<_> = state
                .history
                .range(revisions)
                .flat_map(|(_, events)| events)
                .filter(|event| within(&event.kv.key, &self.range))
                .cloned()
                .collect();
            while events.len() > 1 && state.random.once_in(2) {
                let rest =
                    events.split_off(1 + state.random.below(events.len() as u64 - 1) as usize);
                let part = std::mem::replace(&mut events, rest);
                let part = WatchResponse { events: part, fragment: true, ..empty.clone() };
                self.messages.push_back(part);
            }
            if !events.is_empty() {
                self.messages.push_back(WatchResponse { events, ..empty });
                return self.messages.pop_front();
            }
        }
        None
    }
}

impl Watch for ModelWatch {
    fn next(&mut self) -> BoxFuture<'_, Result<WatchResponse, Error>> {
        Box::pin(async move {
            self.model.lag(20).await;
            if self.model.fails(50) {
                return lost();
            }
            if self.is_mute {
                return std::future::pending().await;
            }
            loop {
                let model = self.model.clone();
                let mut changed = pin!(model.changed.notified());
                changed.as_mut().enable();
                if self.model.restorations() != self.restorations {
                    return lost();
                }
                if let Some(message) = self.message() {
                    return Ok(message);
                }
                changed.await;
            }
        })
    }

    fn request_progress(&mut self) -> Result<(), Error> {
        self.progress_wanted = true;
        Ok(())
    }
}
