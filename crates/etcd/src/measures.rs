//! Measures of requests to etcd: by operation and collection, and by method.

use pintle_grpc::Code;
use pintle_measure::{Counter, Distribution, Series, nanoseconds};
use pintle_store::Kind;
use tokio::time::Instant;

use crate::error::Error;

/// The bounds of [`Requests::took`], which are upstream's.
pub const REQUEST_BOUNDS: [u64; 23] = nanoseconds([
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
/// The bounds of [`Measures::lease_objects`], which are upstream's.
pub const LEASE_BOUNDS: [u64; 7] = [10, 50, 100, 500, 1000, 2500, 5000];

/// The measures of a store on etcd.
#[derive(Debug)]
pub struct Measures {
    /// Requests by operation (`get`, `list`, `create`, `update`, `delete`) and collection, which is
    /// `""` for reads of all collections. A transaction counts as its first write.
    pub requests: Series<2, Requests>,
    /// Lists of one collection, by collection.
    pub lists: Series<1, Lists>,
    /// The number of progress messages of the watch.
    pub progress: Counter,
    /// The number of writes that shared a lease, for each lease that no further write joins.
    pub lease_objects: Distribution,
    calls: [Calls; Method::ALL.len()],
}

/// Requests of one kind.
#[derive(Debug)]
pub struct Requests {
    /// Their durations.
    pub took: Distribution,
    /// The number of requests without an answer, or with a refusal.
    pub failed: Counter,
}

/// Lists of one collection.
#[derive(Debug, Default)]
pub struct Lists {
    /// The number of lists.
    pub count: Counter,
    /// The number of objects that they read.
    pub fetched: Counter,
}

/// The called methods of etcd's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads keys.
    Range,
    /// Executes a transaction.
    Txn,
    /// Compacts the history before a revision.
    Compact,
    /// Grants a lease.
    LeaseGrant,
    /// Returns a member's status.
    Status,
    /// Watches keys.
    Watch,
}

/// Calls of one method.
#[derive(Debug, Default)]
pub struct Calls {
    /// The number of started calls.
    pub started: Counter,
    /// The number of sent messages, without a watch's requests for progress.
    pub sent: Counter,
    /// The number of received messages.
    pub received: Counter,
    handled: [Counter; Code::KNOWN],
}

impl Default for Measures {
    fn default() -> Self {
        let requests =
            || Requests { took: Distribution::new(&REQUEST_BOUNDS), failed: Counter::default() };
        Self {
            requests: Series::new(requests),
            lists: Series::default(),
            progress: Counter::default(),
            lease_objects: Distribution::new(&LEASE_BOUNDS),
            calls: Default::default(),
        }
    }
}

impl Measures {
    /// Returns the calls of each method.
    pub fn calls(&self) -> impl Iterator<Item = (Method, &Calls)> {
        Method::ALL.into_iter().zip(&self.calls)
    }

    /// Measures a request that started at `begun`.
    pub(crate) fn request<T>(
        &self,
        (operation, collection): (&'static str, &str),
        begun: Instant,
        outcome: &Result<T, Error>,
    ) {
        let requests = self.requests.with([operation, collection]);
        requests.took.took(begun.elapsed());
        requests.failed.add(u64::from(outcome.is_err()));
    }

    pub(crate) const fn of(&self, method: Method) -> &Calls {
        &self.calls[method as usize]
    }
}

/// Returns upstream's name of a write's operation.
pub(crate) const fn operation(kind: Kind) -> &'static str {
    match kind {
        Kind::Created => "create",
        Kind::Updated => "update",
        Kind::Deleted => "delete",
    }
}

impl Method {
    const ALL: [Self; 6] =
        [Self::Range, Self::Txn, Self::Compact, Self::LeaseGrant, Self::Status, Self::Watch];

    /// Returns the service of the method.
    pub const fn service(self) -> &'static str {
        match self {
            Self::Range | Self::Txn | Self::Compact => "etcdserverpb.KV",
            Self::LeaseGrant => "etcdserverpb.Lease",
            Self::Status => "etcdserverpb.Maintenance",
            Self::Watch => "etcdserverpb.Watch",
        }
    }

    /// Returns the method's name in its service.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "Range",
            Self::Txn => "Txn",
            Self::Compact => "Compact",
            Self::LeaseGrant => "LeaseGrant",
            Self::Status => "Status",
            Self::Watch => "Watch",
        }
    }

    /// Whether requests and answers are streams.
    pub const fn is_stream(self) -> bool {
        matches!(self, Self::Watch)
    }

    /// Returns the path of the method in a URI.
    pub(crate) fn path(self) -> String {
        format!("/{}/{}", self.service(), self.name())
    }
}

impl Calls {
    /// Counts a call's status code.
    pub(crate) fn ended(&self, code: Code) {
        if let Some(handled) = self.handled.get(usize::from(code.0)) {
            handled.add(1);
        }
    }

    /// Returns the status codes of ended calls, with their numbers.
    pub fn handled(&self) -> impl Iterator<Item = (Code, u64)> {
        let codes = (0..).map(Code).zip(&self.handled);
        codes.map(|(code, count)| (code, count.get())).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_its_own_counters() {
        let measures = Measures::default();
        for (number, method) in Method::ALL.into_iter().enumerate() {
            measures.of(method).started.add(number as u64);
            measures.of(method).ended(Code(14));
            measures.of(method).ended(Code(99)); // an unknown code is not counted
        }
        for (number, (method, calls)) in measures.calls().enumerate() {
            assert_eq!((Method::ALL[number], calls.started.get()), (method, number as u64));
            assert_eq!(calls.handled().collect::<Vec<_>>(), [(Code(14), 1)]);
        }
    }
}
