//! How many requests are worked on at the same time, how many sessions there are, and how many of both are one
//! user's. Watches do not count.
//!
//! Nobody holds more places than they leave to others: a user gets a further place as long as more places
//! are free than this user holds. One alone can have half of them; beside that one, another has half of
//! what is left. All requests without credentials are one user's.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pintle_auth::User;
use pintle_meta::Status;

/// The limits, and how far they are used.
pub(crate) struct Limits {
    read_only: Arc<Lane>,
    mutating: Arc<Lane>,
    sessions: Arc<Lane>,
}

struct Lane {
    /// 0 for no limit.
    max: usize,
    /// All requests, also of those who have no limit.
    used: AtomicUsize,
    /// How many places each user holds who has a limit.
    held: Mutex<HashMap<ByName, usize>>,
}

/// A place among the requests that are worked on, or among the sessions; given back when dropped.
pub(crate) struct Place {
    lane: Arc<Lane>,
    /// Who has a limit.
    user: Option<ByName>,
}

/// A user, known by name.
#[derive(Clone)]
struct ByName(Arc<User>);

impl Limits {
    /// Limits for requests that change nothing, for those that do, and for sessions; 0 is none.
    pub(crate) fn new(read_only_max: usize, mutating_max: usize, sessions_max: usize) -> Self {
        Self {
            read_only: Lane::new(read_only_max),
            mutating: Lane::new(mutating_max),
            sessions: Lane::new(sessions_max),
        }
    }

    /// A place for a request, or 429. Who may do everything is always let in, so that an overloaded
    /// server can be mended.
    pub(crate) fn enter(&self, read_only: bool, user: &Arc<User>) -> Result<Place, Status> {
        if read_only { self.read_only.enter(user) } else { self.mutating.enter(user) }
    }

    /// A place for a session, likewise.
    pub(crate) fn enter_session(&self, user: &Arc<User>) -> Result<Place, Status> {
        self.sessions.enter(user)
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

impl Lane {
    fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicUsize::new(0), held: Mutex::default() })
    }

    fn enter(self: &Arc<Self>, user: &Arc<User>) -> Result<Place, Status> {
        if self.max == 0 || user.is_master() {
            self.used.fetch_add(1, Ordering::Relaxed);
            return Ok(Place { lane: self.clone(), user: None });
        }
        let mut held = self.held.lock();
        let free = self.max.saturating_sub(self.used.load(Ordering::Relaxed));
        let places = held.get_mut(user.name.as_str());
        if places.as_ref().map_or(0, |places| **places) >= free {
            let why = "Too many requests, please try again later.";
            return Err(Status::too_many_requests(why, 1)); // ST-11
        }
        let user = ByName(user.clone());
        match places {
            Some(places) => *places += 1,
            None => {
                held.insert(user.clone(), 1);
            }
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        Ok(Place { lane: self.clone(), user: Some(user) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lane.used.fetch_sub(1, Ordering::Relaxed);
        let Some(user) = &self.user else { return };
        let mut held = self.lane.held.lock();
        if let Some(places) = held.get_mut(user) {
            *places -= 1;
            if *places == 0 {
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

    /// As many places as a user gets.
    fn fill(limits: &Limits, name: &str) -> Vec<Place> {
        let user = user(name);
        std::iter::from_fn(|| limits.enter(true, &user).ok()).collect()
    }

    #[test]
    fn lanes_fill_up_separately_and_empty_again() {
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
    fn who_holds_many_places_leaves_as_many_to_others() {
        let limits = Limits::new(400, 200, 100);
        let shares: Vec<Vec<Place>> =
            ["a", "b", "c", "d"].into_iter().map(|name| fill(&limits, name)).collect();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [200, 100, 50, 25]);
        drop(shares);
        assert_eq!(limits.read_only(), 0);
        assert!(limits.read_only.held.lock().is_empty());
        assert_eq!(fill(&limits, "d").len(), 200);
    }

    #[test]
    fn masters_are_always_let_in() {
        let limits = Limits::new(1, 1, 1);
        let master = User { groups: vec!["system:masters".to_owned()], ..User::default() };
        let _place = limits.enter(false, &user("a")).unwrap();
        assert!(limits.enter(false, &Arc::new(master)).is_ok());
    }

    #[test]
    fn no_limit_is_none() {
        let limits = Limits::new(0, 0, 0);
        let anonymous = Arc::new(User::anonymous());
        let places: Vec<_> =
            (0..1000).map(|_| limits.enter(true, &anonymous).ok().unwrap()).collect();
        assert_eq!(limits.read_only(), places.len());
    }
}
