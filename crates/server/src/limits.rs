//! How many requests are worked on at the same time. Watches do not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_auth::User;
use pintle_meta::Status;

/// The limits, and how far they are used.
pub(crate) struct Limits {
    read_only: Lane,
    mutating: Lane,
}

struct Lane {
    /// 0 for no limit.
    max: usize,
    used: Arc<AtomicUsize>,
}

/// A place among the requests that are worked on; given back when dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Limits {
    /// Limits for requests that change nothing and for those that do; 0 is none.
    pub(crate) fn new(read_only_max: usize, mutating_max: usize) -> Self {
        let lane = |max| Lane { max, used: Arc::default() };
        Self { read_only: lane(read_only_max), mutating: lane(mutating_max) }
    }

    /// A place for a request, or 429. Who may do everything is always let in, so that an overloaded
    /// server can be mended.
    pub(crate) fn enter(&self, read_only: bool, user: &User) -> Result<Place, Status> {
        let lane = if read_only { &self.read_only } else { &self.mutating };
        let before = lane.used.fetch_add(1, Ordering::Relaxed);
        let place = Place(lane.used.clone());
        if lane.max > 0 && before >= lane.max && !user.is_master() {
            let why = "Too many requests, please try again later.";
            return Err(Status::too_many_requests(why, 1)); // ST-11
        }
        Ok(place)
    }

    /// How many requests that change nothing are worked on.
    pub(crate) fn read_only(&self) -> usize {
        self.read_only.used.load(Ordering::Relaxed)
    }

    /// How many requests that change something are worked on.
    pub(crate) fn mutating(&self) -> usize {
        self.mutating.used.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_fill_up_separately_and_empty_again() {
        let limits = Limits::new(2, 1);
        let user = User::anonymous();
        let first = limits.enter(true, &user).unwrap();
        let _second = limits.enter(true, &user).unwrap();
        let refused = limits.enter(true, &user).err().unwrap();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.details.unwrap().retry_after_seconds, Some(1));
        assert!(limits.enter(false, &user).is_ok());
        drop(first);
        assert!(limits.enter(true, &user).is_ok());
    }

    #[test]
    fn masters_are_always_let_in() {
        let limits = Limits::new(1, 1);
        let master = User { groups: vec!["system:masters".to_owned()], ..User::default() };
        let _place = limits.enter(false, &User::anonymous()).unwrap();
        assert!(limits.enter(false, &master).is_ok());
    }

    #[test]
    fn no_limit_is_none() {
        let limits = Limits::new(0, 0);
        let places: Vec<_> =
            (0..1000).map(|_| limits.enter(true, &User::anonymous()).ok().unwrap()).collect();
        assert_eq!(limits.read_only(), places.len());
    }
}
