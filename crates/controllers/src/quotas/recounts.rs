//! Quotas whose usage of pods must be counted again without a change of the quota: when the grace
//! period of a pod is over (see `pintle_admission::quota`), and once at the start, because the
//! server may have stopped in between.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_admission::quota::usage::{ChargedUntil, GRACE, end_of_grace};
use pintle_meta::Status;
use pintle_registry::{Object, Resource};
use pintle_value::Str;
use tokio::sync::Notify;

use crate::garbage::may_be_terminating;
use crate::reconcile::{Progress, Source};
use crate::{Environment, split};

/// Begins the names of pods in the queue; no namespace has such a name.
const POD: &str = "pod:";

/// Grace periods that end within this time cause one count.
const ROUND: Duration = Duration::from_secs(10);

/// A count is requested also for pods that were removed a little earlier than writes stop to release
/// them.
const MARGIN_MICROS: i64 = 10_000_000;

/// The requested counts, and the pods that will cause some.
pub(super) struct Recounts {
    pods: Option<Arc<Resource>>,
    ends: Mutex<HashMap<Str, End>>,
    /// Namespaces; `""` for all.
    requested: Mutex<BTreeSet<Str>>,
    more: Notify,
    /// Quotas, by namespace and name.
    due: Mutex<BTreeSet<Str>>,
}

/// The end of a pod's grace period.
struct End {
    micros: i64,
    /// Whether a count leaves the pod out.
    is_left_out: bool,
}

impl Recounts {
    pub(super) fn new(environment: &Environment) -> Self {
        let recounts = Self {
            pods: environment.resource("", "v1", "pods"),
            ends: Mutex::default(),
            requested: Mutex::default(),
            more: Notify::new(),
            due: Mutex::default(),
        };
        recounts.request("");
        recounts
    }

    /// Pods that are being deleted, or were.
    pub(super) fn source(&self) -> Option<Source> {
        fn name(pod: &Object) -> Option<Str> {
            may_be_terminating(pod.abridged()).then(|| format!("{POD}{}", pod.item).into())
        }
        self.pods.as_ref().map(|pods| Source::new(pods, name))
    }

    /// The pod that a name of the queue stands for.
    pub(super) fn pod_of(name: &str) -> Option<&str> {
        name.strip_prefix(POD)
    }

    /// The namespaces whose quotas must be counted. Cancel safe.
    pub(super) async fn next(&self) -> BTreeSet<Str> {
        self.more.notified().await;
        std::mem::take(&mut *self.requested.lock())
    }

    fn request(&self, namespace: &str) {
        self.requested.lock().insert(namespace.into());
        self.more.notify_one();
    }

    /// Adds a quota that must be counted.
    pub(super) fn add(&self, quota: &str) {
        self.due.lock().insert(quota.into());
    }

    /// Whether a quota must be counted; removes it.
    pub(super) fn take(&self, quota: &str) -> bool {
        self.due.lock().remove(quota)
    }

    /// Requests a count when a pod's grace period is over, and if it was removed while writes did not
    /// release it.
    pub(super) fn observe(&self, environment: &Environment, pod: &str) -> Result<Progress, Status> {
        let (namespace, name) = split(pod);
        let now = (environment.clock)();
        let stored =
            self.pods.as_ref().and_then(|pods| environment.registry.peek(pods, namespace, name));
        let end = stored.map(|pod| pod.excerpt(GRACE)).transpose()?.as_ref().and_then(end_of_grace);
        let mut ends = self.ends.lock();
        let Some(end) = end else {
            let until = ChargedUntil::for_write(now);
            // If a count left the pod out, the write that removed it may have released it again: by
            // another end that a DELETE had set, and that was not observed.
            if let Some(End { micros, .. }) = ends.remove(pod)
                && until.is_after(micros.saturating_sub(MARGIN_MICROS))
            {
                self.request(namespace);
            }
            return Ok(Progress::Done);
        };
        let known = ends.entry(pod.into()).or_insert(End { micros: end, is_left_out: false });
        if known.micros != end {
            // Another DELETE has set another end. If a count has left the pod out, it is charged
            // again, because writes release it again.
            if known.is_left_out {
                self.request(namespace);
            }
            *known = End { micros: end, is_left_out: false };
        }
        let until = ChargedUntil::for_count(now);
        if !until.is_after(end) {
            return Ok(Progress::After(rounded(until.wait(end))));
        }
        if !known.is_left_out {
            known.is_left_out = true;
            self.request(namespace);
        }
        Ok(Progress::Done)
    }
}

/// A wait of whole rounds, after which a grace period is over for a count.
fn rounded(wait: Duration) -> Duration {
    let rounds = wait.as_secs() / ROUND.as_secs() + 1;
    ROUND * u32::try_from(rounds).unwrap_or(u32::MAX)
}
