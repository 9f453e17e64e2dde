//! Stores on a model of etcd with random faults. Whatever the model does, the followers' records
//! and the writers' answers must agree with the database's history. A seed that fails always fails.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{
    At, Change, Error, Expect, Follower, Group, Key, Kind, Record, Revision, Store, Template, Write,
};
use tokio::time::{Instant, sleep};

use super::model::{Access, History, Model, Random};
use super::plain;
use crate::messages::{Event, EventType};
use crate::opening::EtcdOpening;
use crate::store::{EtcdStore, Options};
use crate::translation::Translation;

/// The number of seeds. `PINTLE_ETCD_SEEDS` sets another number or a range (`17..18`).
const SEEDS: u64 = 60;

const WRITES: usize = 40;
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);

/// A call of a follower.
#[derive(Debug)]
enum Call {
    Apply(Vec<Record>, Revision),
    Reset(Vec<Record>, Revision),
}

#[derive(Default)]
pub(super) struct Calls(Mutex<Vec<Call>>);

impl Follower for Calls {
    fn apply(&self, records: &[Record], head: Revision) {
        self.0.lock().push(Call::Apply(records.to_vec(), head));
    }

    fn reset(&self, state: &[Record], head: Revision) {
        self.0.lock().push(Call::Reset(state.to_vec(), head));
    }
}

impl Calls {
    fn has(&self, record: &Record) -> bool {
        self.0.lock().iter().any(|call| match call {
            Call::Apply(records, head) => *head >= record.revision || records.contains(record),
            Call::Reset(_, head) => *head >= record.revision,
        })
    }
}

/// A write and its outcome.
struct Answered {
    key: Key,
    value: String,
    outcome: Result<Record, Error>,
}

struct Campaign {
    model: Arc<Model>,
    answered: Mutex<Vec<Answered>>,
}

#[test]
fn followers_and_writers_agree_with_the_history() {
    let seeds = env::var("PINTLE_ETCD_SEEDS").ok().map_or(0..SEEDS, |text| {
        let (first, end) = text.split_once("..").unwrap_or(("0", &text));
        first.parse().unwrap()..end.parse().unwrap()
    });
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(run(seed));
        }));
        if let Err(panic) = outcome {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Two stores, writers on both, another process that compacts, and sometimes a backup.
async fn run(seed: u64) {
    let mut random = Random::new(seed);
    let version = if random.once_in(2) { "3.4.23" } else { "3.6.8" };
    let model = Model::new(seed, version);
    let campaign = Arc::new(Campaign { model: model.clone(), answered: Mutex::default() });
    let mut followed = Vec::new();
    for _ in 0..2 {
        let store = open(&model).await;
        let calls = Arc::new(Calls::default());
        follow(&store, &calls).await;
        followed.push((store, calls));
    }
    let mut tasks = Vec::new();
    for (index, (store, calls)) in followed.iter().enumerate() {
        for writer in 0..3 {
            let campaign = campaign.clone();
            let (store, calls) = (store.clone(), calls.clone());
            let random = Random::new(seed ^ (1 + index as u64) << 32 ^ (1 + writer) << 40);
            let name = format!("{index}{writer}");
            tasks.push(tokio::spawn(campaign.write(store, calls, random, name)));
        }
    }
    let disturbances = random.below(4);
    let restores = random.once_in(3);
    for disturbance in 0..disturbances {
        sleep(Duration::from_millis(200 + random.below(400))).await;
        // A further follower begins shortly before the disturbance.
        let (store, calls) = (followed[random.below(2) as usize].0.clone(), Arc::default());
        followed.push((store.clone(), Arc::clone(&calls)));
        tasks.push(tokio::spawn(async move { follow(&store, &calls).await }));
        sleep(Duration::from_millis(random.below(100))).await;
        let head = model.head();
        let _ = model.compact_to(head - random.below(20).cast_signed().min(head - 1));
        if restores && disturbance == 1 {
            model.restore(2);
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    model.stop_faults();
    while model.has_delayed() {
        sleep(Duration::from_millis(50)).await;
    }
    let late = Arc::new(Calls::default());
    follow(&followed[0].0, &late).await;
    followed.push((followed[0].0.clone(), late));
    for (store, calls) in &followed {
        let fresh = caught_up(store).await;
        assert_eq!(fresh.0.cast_signed(), model.head());
        check_calls(&model, calls);
        check_reads(&model, store).await;
    }
    campaign.check_answers();
}

/// A follower during whose first call a backup is restored, and read by the other followers.
struct Interrupted {
    model: Arc<Model>,
    calls: Calls,
    others: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Interrupted {
    fn interrupt(&self) {
        if let Some(others) = self.others.lock().take() {
            self.model.restore(2);
            others.recv_timeout(TIMEOUT).expect("the others get the state again");
        }
    }
}

impl Follower for Interrupted {
    fn apply(&self, records: &[Record], head: Revision) {
        self.calls.apply(records, head);
        self.interrupt();
    }

    fn reset(&self, state: &[Record], head: Revision) {
        self.calls.reset(state, head);
        self.interrupt();
    }
}

/// A follower that tells when it got the state again.
struct Telling(Mutex<mpsc::Sender<()>>);

impl Follower for Telling {
    fn apply(&self, _: &[Record], _: Revision) {}

    fn reset(&self, _: &[Record], _: Revision) {
        let _ = self.0.lock().send(());
    }
}

/// A backup that is restored after a new follower has read the state, and before it gets changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_follower_misses_no_restoration() {
    let model = Model::new(1, "3.6.8");
    model.stop_faults();
    let store = open(&model).await;
    let (tell, others) = mpsc::channel();
    store.follow(Arc::new(Telling(Mutex::new(tell)))).await.unwrap();
    for number in 0..8 {
        let key = Key { collection: "a".into(), item: number.to_string().as_str().into() };
        let change = Change::Put(Template::whole(b"x".to_vec()));
        let first = Write { key, expect: Expect::Absent, change, note: None };
        let group = Group { first, rest: Vec::new(), unchanged: Vec::new() };
        store.commit(group).await.unwrap();
    }
    // Another process compacts, so the new follower reads the newest state.
    model.compact_to(3).unwrap();
    let others = Mutex::new(Some(others));
    let interrupted =
        Arc::new(Interrupted { model: model.clone(), calls: Calls::default(), others });
    store.follow(interrupted.clone()).await.unwrap();
    caught_up(&store).await;
    assert!(model.head() < 9, "revisions went back");
    check_calls(&model, &interrupted.calls);
}

pub(super) async fn open(model: &Arc<Model>) -> Arc<EtcdStore> {
    let options = Options { compaction_interval: None, ..Options::default() };
    loop {
        let opening = EtcdOpening::new(Arc::new(Access(model.clone())), options.clone(), plain());
        if let Ok(opening) = opening.await {
            return Arc::new(opening.start());
        }
    }
}

pub(super) async fn follow(store: &EtcdStore, calls: &Arc<Calls>) {
    while store.follow(calls.clone()).await.is_err() {
        calls.0.lock().clear();
    }
}

/// Waits until the followers of a store are up to date.
pub(super) async fn caught_up(store: &EtcdStore) -> Revision {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Ok(fresh) = store.fresh().await
            && store.head() == fresh
        {
            return fresh;
        }
        assert!(Instant::now() < deadline, "the store does not catch up");
        sleep(Duration::from_millis(20)).await;
    }
}

impl Campaign {
    /// Writes random keys, with expectations from what was read last.
    async fn write(
        self: Arc<Self>,
        store: Arc<EtcdStore>,
        calls: Arc<Calls>,
        mut random: Random,
        name: String,
    ) {
        for n in 0..WRITES {
            sleep(Duration::from_millis(random.below(30))).await;
            let restorations = self.model.restorations();
            let acknowledged = self.acknowledged();
            if let Ok(fresh) = store.fresh().await
                && self.model.restorations() == restorations
                && restorations == 0
            {
                assert!(fresh >= acknowledged, "{fresh} is not fresh: {acknowledged} was before");
            }
            let mut writes = Vec::new();
            for collection in ["a", "b", "c"].iter().take(1 + random.below(3) as usize) {
                let item = random.below(4).to_string();
                let key = Key { collection: (*collection).into(), item: item.as_str().into() };
                let Ok(current) = store.get(&key, At::Head).await else { continue };
                let expect = current.map_or(Expect::Absent, |r| Expect::At(r.revision));
                let template = Template::whole(format!("{name}-{n}-{collection}").into_bytes());
                let is_deleted = expect != Expect::Absent && random.once_in(3);
                let change =
                    if is_deleted { Change::Delete(template) } else { Change::Put(template) };
                writes.push(Write { key, expect, change, note: None });
            }
            if !writes.is_empty() {
                self.commit(&store, &calls, writes).await;
            }
        }
    }

    async fn commit(&self, store: &EtcdStore, calls: &Calls, writes: Vec<Write>) {
        let restorations = self.model.restorations();
        let sent = writes.clone();
        let mut writes = writes.into_iter();
        let first = writes.next().unwrap();
        let group = Group { first, rest: writes.collect(), unchanged: Vec::new() };
        let outcome = store.commit(group).await;
        match &outcome {
            Ok(records) if self.model.restorations() == restorations => {
                for record in records {
                    assert!(calls.has(record), "{record:?} is acknowledged and not visible");
                }
            }
            Err(Error::Conflict { current: Some(current) })
                if self.model.restorations() == restorations =>
            {
                assert!(calls.has(current), "{current:?} is in conflict and is not visible");
            }
            _ => {}
        }
        for (index, write) in sent.into_iter().enumerate() {
            let outcome = outcome.clone().map(|records| records[index].clone());
            let value = String::from_utf8(write.change.template().value().to_vec()).unwrap();
            self.answered.lock().push(Answered { key: write.key, value, outcome });
        }
    }

    fn acknowledged(&self) -> Revision {
        let answered = self.answered.lock();
        let revisions = answered.iter().filter_map(|a| a.outcome.as_ref().ok());
        revisions.map(|record| record.revision).max().unwrap_or_default()
    }

    /// Each acknowledged write has happened. No failed write is in the present history; it may have
    /// happened in one that a restoration ended.
    fn check_answers(&self) {
        let histories = self.model.histories();
        for Answered { key, value, outcome } in self.answered.lock().iter() {
            let find = |history: &History| {
                let mut events = history.values().flatten();
                events.find(|event| event.kv.value == value.as_bytes()).cloned()
            };
            match outcome {
                Ok(record) if record.kind == Kind::Deleted => {
                    let is_in_history = histories.iter().any(|history| has(history, record));
                    assert!(is_in_history, "{record:?} was acknowledged");
                }
                Ok(record) => {
                    let event = histories.iter().find_map(find);
                    let event = event.unwrap_or_else(|| panic!("{record:?} was acknowledged"));
                    assert_eq!(
                        event.kv.mod_revision,
                        record.revision.0.cast_signed(),
                        "{record:?}"
                    );
                }
                Err(Error::Unknown { .. }) => {}
                Err(error) => {
                    let present = histories.last().and_then(find);
                    assert_eq!(present, None, "{key:?} {value}: {error}");
                }
            }
        }
    }
}

/// Whether a record is in a history.
fn has(history: &History, record: &Record) -> bool {
    let translation = Translation::new(plain(), None, "registry");
    let path = translation.path(&record.key);
    let events = history.get(&record.revision.0.cast_signed());
    events.into_iter().flatten().any(|event| {
        event.kv.key == path
            && kind(event) == record.kind
            && (record.kind == Kind::Deleted || event.kv.value == record.value())
    })
}

fn kind(event: &Event) -> Kind {
    if event.r#type == EventType::Delete as i32 {
        Kind::Deleted
    } else if event.kv.create_revision == event.kv.mod_revision {
        Kind::Created
    } else {
        Kind::Updated
    }
}

/// Checks the calls of a follower: each record has happened, they are in order, none is missing
/// since the last reset, and the final state is the model's.
pub(super) fn check_calls(model: &Model, calls: &Calls) {
    let histories = model.histories();
    let (mut state, mut head, mut is_state) = (BTreeMap::new(), Revision(0), true);
    let calls = calls.0.lock();
    // Only calls after the last reset can be compared with the present history.
    let last_reset = calls.iter().rposition(|call| matches!(call, Call::Reset(..)));
    for (index, call) in calls.iter().enumerate() {
        let (records, next) = match call {
            Call::Reset(records, next) => {
                state.clear();
                (records, *next)
            }
            Call::Apply(records, next) => {
                assert!(*next >= head, "heads grow: {next} after {head}");
                let after = records.first().is_none_or(|first| first.revision > head);
                assert!(after, "{records:?} after {head}");
                (records, *next)
            }
        };
        assert!(records.is_sorted_by(|a, b| a.revision <= b.revision), "{records:?}");
        assert!(records.last().is_none_or(|last| last.revision <= next), "{records:?} {next}");
        for record in records {
            assert!(histories.iter().any(|history| has(history, record)), "{record:?}");
            match record.kind {
                Kind::Deleted => state.remove(&record.key),
                _ => state.insert(record.key.clone(), record.clone()),
            };
        }
        // The state at the floor comes in several calls; only the first can be recognized.
        let is_history = matches!(call, Call::Apply(..)) && !is_state;
        if is_history && last_reset.is_none_or(|last| index > last) && model.restorations() == 0 {
            let revisions = head.0.cast_signed() + 1..next.0.cast_signed() + 1;
            let count =
                histories[0].range(revisions).map(|(_, events)| events.len()).sum::<usize>();
            assert_eq!(records.len(), count, "all between {head} and {next}: {records:?}");
        }
        (head, is_state) = (next, false);
    }
    let expected = model.keys();
    let values: Vec<_> = state.values().map(Record::value).collect();
    let expected: Vec<_> = expected.iter().map(|stored| stored.value.clone()).collect();
    assert_eq!(values, expected, "the state at {head}");
}

/// Checks that reads return the model's state.
async fn check_reads(model: &Model, store: &EtcdStore) {
    let mut values = Vec::new();
    for collection in ["a", "b", "c"] {
        let listed = store.list(collection, "", At::Head).await.unwrap();
        values.extend(listed.iter().map(Record::value));
    }
    assert_eq!(values, model.keys().iter().map(|stored| stored.value.clone()).collect::<Vec<_>>());
}
