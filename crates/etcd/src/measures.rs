//! What is asked of etcd, counted: requests by what they are for, and calls by their methods.

use pintle_measure::{Counter, Distribution, Series, nanoseconds};
use pintle_store::Kind;
use tokio::time::Instant;

use crate::error::{Code, Error};

/// The bounds of [`Requests::took`], upstream's.
pub const REQUEST_BOUNDS: [u64; 23] = nanoseconds([
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
/// The bounds of [`Measures::lease_objects`], upstream's.
pub const LEASE_BOUNDS: [u64; 7] = [10, 50, 100, 500, 1000, 2500, 5000];

/// What a store on etcd measures.
#[derive(Debug)]
pub struct Measures {
    /// Requests for keys, by what is done (`get`, `list`, `create`, `update`, `delete`) and by collection;
    /// what is read of all collections has none. A transaction is the write that it is about.
    pub requests: Series<2, Requests>,
    /// Lists of one collection, by collection.
    pub lists: Series<1, Lists>,
    /// How often the watch was told how far it is though nothing had happened.
    pub progress: Counter,
    /// How many objects were given each lease that is given to no further ones.
    pub lease_objects: Distribution,
    calls: [Calls; Method::ALL.len()],
}

/// Requests of one kind.
#[derive(Debug)]
pub struct Requests {
    /// How long they took.
    pub took: Distribution,
    /// How many of them had no answer, or a refusal.
    pub failed: Counter,
}

/// Lists of one collection.
#[derive(Debug, Default)]
pub struct Lists {
    /// How many.
    pub count: Counter,
    /// How many objects they read.
    pub fetched: Counter,
}

/// The methods of etcd's API that are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads keys.
    Range,
    /// Does a transaction.
    Txn,
    /// Forgets what was before a revision.
    Compact,
    /// Grants a lease.
    LeaseGrant,
    /// What a member says of itself.
    Status,
    /// Watches.
    Watch,
}

/// Calls of one method.
#[derive(Debug, Default)]
pub struct Calls {
    /// How many were begun.
    pub started: Counter,
    /// How many messages were sent.
    pub sent: Counter,
    /// How many messages came.
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
    /// The calls of each method.
    pub fn calls(&self) -> impl Iterator<Item = (Method, &Calls)> {
        Method::ALL.into_iter().zip(&self.calls)
    }

    /// Counts a request that began at a time.
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

/// What a write does to its key, as upstream names it.
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

    /// The service that has it.
    pub const fn service(self) -> &'static str {
        match self {
            Self::Range | Self::Txn | Self::Compact => "etcdserverpb.KV",
            Self::LeaseGrant => "etcdserverpb.Lease",
            Self::Status => "etcdserverpb.Maintenance",
            Self::Watch => "etcdserverpb.Watch",
        }
    }

    /// Its name in the service.
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

    /// Where it is called.
    pub(crate) fn path(self) -> String {
        format!("/{}/{}", self.service(), self.name())
    }
}

impl Calls {
    /// Counts how a call ended.
    pub(crate) fn ended(&self, code: Code) {
        if let Some(handled) = self.handled.get(usize::from(code.0)) {
            handled.add(1);
        }
    }

    /// How the calls ended that did, as often as they did so.
    pub fn handled(&self) -> impl Iterator<Item = (Code, u64)> {
        let codes = (0..).map(Code).zip(&self.handled);
        codes.map(|(code, count)| (code, count.get())).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_calls_of_their_own() {
        let measures = Measures::default();
        for (number, method) in Method::ALL.into_iter().enumerate() {
            measures.of(method).started.add(number as u64);
            measures.of(method).ended(Code(14));
            measures.of(method).ended(Code(99)); // nobody has such
        }
        for (number, (method, calls)) in measures.calls().enumerate() {
            assert_eq!((Method::ALL[number], calls.started.get()), (method, number as u64));
            assert_eq!(calls.handled().collect::<Vec<_>>(), [(Code(14), 1)]);
        }
    }
}
