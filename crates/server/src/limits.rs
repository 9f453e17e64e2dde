//! Limits on requests in flight and on sessions, in total and per user. Watches do not count.
//!
//! A user gets another permit while more permits are free than the user holds. So one user alone
//! can hold half of all permits, and a second user half of the rest. All requests without
//! credentials count as those of one user.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pintle_auth::User;
use pintle_meta::Status;

/// The limits and the permits in use.
pub(crate) struct Limits {
    read_only: Arc<Limit>,
    mutating: Arc<Limit>,
    sessions: Arc<Limit>,
}

struct Limit {
    /// The number of permits; 0 means no limit.
    max: usize,
    /// The number of permits in use, those of users without a limit included.
    used: AtomicUsize,
    /// The number of permits of each user with a limit.
    held: Mutex<HashMap<ByName, usize>>,
}

/// The permit of a request in flight or of a session; returned when dropped.
pub(crate) struct Permit {
    limit: Arc<Limit>,
    /// `None` for a user without a limit.
    user: Option<ByName>,
}

/// A user, compared by name.
#[derive(Clone)]
struct ByName(Arc<User>);

impl Limits {
    /// Limits on read-only requests, on mutating requests and on sessions; 0 is no limit.
    pub(crate) fn new(read_only_max: usize, mutating_max: usize, sessions_max: usize) -> Self {
        Self {
            read_only: Limit::new(read_only_max),
            mutating: Limit::new(mutating_max),
            sessions: Limit::new(sessions_max),
        }
    }

    /// A permit for a request, or 429. Members of `system:masters` have no limit, so that an
    /// administrator can repair an overloaded server.
    pub(crate) fn enter(&self, read_only: bool, user: &Arc<User>) -> Result<Permit, Status> {
        if read_only { self.read_only.enter(user) } else { self.mutating.enter(user) }
    }

    /// A permit for a session, by the same rules.
    pub(crate) fn enter_session(&self, user: &Arc<User>) -> Result<Permit, Status> {
        self.sessions.enter(user)
    }

    /// The number of read-only requests in flight.
    pub(crate) fn read_only(&self) -> usize {
        self.read_only.used.load(Ordering::Relaxed)
    }

    /// The number of mutating requests in flight.
    pub(crate) fn mutating(&self) -> usize {
        self.mutating.used.load(Ordering::Relaxed)
    }
}

impl Limit {
    fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0), held: Mutex::default() })
    }

    fn enter(self: &Arc<Self>, user: &Arc<User>) -> Result<Permit, Status> {
        if self.max == 0 || user.is_master() {
            self.used.fetch_add(1, Ordering::Relaxed);
            return Ok(Permit { limit: self.clone(), user: None });
        }
        let mut held = self.held.lock();
        let free = self.max.saturating_sub(self.used.load(Ordering::Relaxed));
        let permits = held.get_mut(user.name.as_str());
        if permits.as_ref().map_or(0, |permits| **permits) >= free {
            let why = "Too many requests, please try again later.";
            return Err(Status::too_many_requests(why, 1)); // ST-11
        }
        let user = ByName(user.clone());
        match permits {
            Some(permits) => *permits += 1,
            None => {
                held.insert(user.clone(), 1);
            }
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        Ok(Permit { limit: self.clone(), user: Some(user) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limit.used.fetch_sub(1, Ordering::Relaxed);
        let Some(user) = &self.user else { return };
        let mut held = self.limit.held.lock();
        if let Some(permits) = held.get_mut(user) {
            *permits -= 1;
            if *permits == 0 {
                held.remove(user);
            }
        }
    }
}

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Arc<User> {
        Arc::new(User { name: name.to_owned(), ..User::default() })
    }

    /// Enters as a user until a request is refused.
    fn fill(limits: &Limits, name: &str) -> Vec<Permit> {
        let user = user(name);
        std::iter::from_fn(|| limits.enter(true, &user).ok()).collect()
    }

    #[test]
    fn reads_writes_and_sessions_have_separate_limits() {
        let limits = Limits::new(2, 1, 1);
        let first = limits.enter(true, &user("a")).unwrap();
        let _second = limits.enter(true, &user("b")).unwrap();
        let refused = limits.enter(true, &user("c")).err().unwrap();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.details.unwrap().retry_after_seconds, Some(1));
        assert!(limits.enter(false, &user("c")).is_ok());
        let _session = limits.enter_session(&user("a")).unwrap();
        assert!(limits.enter_session(&user("b")).is_err());
        drop(first);
        assert!(limits.enter(true, &user("c")).is_ok());
    }

    #[test]
    fn a_user_gets_half_of_the_free_permits() {
        let limits = Limits::new(400, 200, 100);
        let shares: Vec<Vec<Permit>> =
            ["a", "b", "c", "d"].into_iter().map(|name| fill(&limits, name)).collect();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [200, 100, 50, 25]);
        drop(shares);
        assert_eq!(limits.read_only(), 0);
        assert!(limits.read_only.held.lock().is_empty());
        assert_eq!(fill(&limits, "d").len(), 200);
    }

    #[test]
    fn masters_have_no_limit() {
        let limits = Limits::new(1, 1, 1);
        let master = User { groups: vec!["system:masters".to_owned()], ..User::default() };
        let _permit = limits.enter(false, &user("a")).unwrap();
        assert!(limits.enter(false, &Arc::new(master)).is_ok());
    }

    #[test]
    fn zero_is_no_limit() {
        let limits = Limits::new(0, 0, 0);
        let anonymous = Arc::new(User::anonymous());
        let permits: Vec<_> =
            (0..1000).map(|_| limits.enter(true, &anonymous).ok().unwrap()).collect();
        assert_eq!(limits.read_only(), permits.len());
    }
}
