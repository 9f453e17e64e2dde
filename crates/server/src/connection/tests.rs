//! Tests of the connection limits: which connection is closed when there are too many, and when an
//! idle connection is closed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::Version;
use parking_lot::Mutex;
use pintle_auth::User;

use super::ConnectionState;
use super::register::{Entry, Register};
use crate::config::ConnectionLimits;

/// The open connections by name.
type List = Arc<Mutex<Vec<(String, Arc<ConnectionState>)>>>;

/// Connections by name, until they are closed.
struct Fixture {
    register: Arc<Register>,
    open: List,
}

/// Removes a connection from the list when its task ends.
struct OnList(List, Entry);

impl Drop for OnList {
    fn drop(&mut self) {
        self.0.lock().retain(|(_, connection)| !Arc::ptr_eq(connection, self.1.connection()));
    }
}

impl Fixture {
    fn new(connections_max: usize) -> Self {
        let limits = ConnectionLimits { connections_max, ..ConnectionLimits::default() };
        Self { register: Register::new(limits), open: Arc::default() }
    }

    /// Connects from the address with this last number.
    fn connect(&self, name: &str, address: u8) -> Arc<ConnectionState> {
        let mut known = None;
        self.register.admit(IpAddr::V4(Ipv4Addr::new(10, 0, 0, address)), |entry| {
            let connection = entry.connection().clone();
            known = Some(connection.clone());
            self.open.lock().push((name.to_owned(), connection));
            let listed = OnList(self.open.clone(), entry);
            let task = async move {
                listed.1.connection().closing().await;
                drop(listed);
            };
            tokio::spawn(task).abort_handle()
        });
        known.unwrap()
    }

    /// Connects and authenticates.
    fn log_in(&self, name: &str, address: u8, user: &str) -> Arc<ConnectionState> {
        let connection = self.connect(name, address);
        let user = User { name: user.to_owned(), ..User::default() };
        connection.record_user(Some(&user), Version::HTTP_11);
        connection
    }

    /// The names of the open connections, after all tasks have run.
    async fn open(&self) -> String {
        // Paused time stands still while a task can run.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let names: Vec<String> = self.open.lock().iter().map(|(name, _)| name.clone()).collect();
        names.join(" ")
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_with_most_connections_loses_its_oldest() {
    let fixture = Fixture::new(16); // at most 4 unauthenticated
    for name in ["a1", "a2", "a3"] {
        fixture.connect(name, 1);
    }
    fixture.connect("b1", 2);
    assert_eq!(fixture.open().await, "a1 a2 a3 b1");
    fixture.connect("c1", 3);
    assert_eq!(fixture.open().await, "a2 a3 b1 c1");
    fixture.connect("a4", 1);
    assert_eq!(fixture.open().await, "a3 b1 c1 a4");
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_connections_take_nothing_from_users() {
    let fixture = Fixture::new(8); // at most 2 unauthenticated
    fixture.log_in("jane", 1, "jane");
    fixture.log_in("joe", 1, "joe");
    for name in ["n1", "n2", "n3", "n4"] {
        fixture.connect(name, 1);
    }
    assert_eq!(fixture.open().await, "jane joe n3 n4");
}

#[tokio::test(start_paused = true)]
async fn the_user_with_most_connections_loses_one_that_is_idle() {
    let fixture = Fixture::new(4);
    fixture.log_in("jane", 1, "jane");
    let busy = fixture.log_in("joe1", 2, "joe").begin();
    fixture.log_in("joe2", 2, "joe");
    fixture.log_in("joe3", 2, "joe");
    fixture.log_in("jack", 3, "jack");
    assert_eq!(fixture.open().await, "jane joe1 joe3 jack");
    fixture.log_in("jill", 3, "jill");
    assert_eq!(fixture.open().await, "jane joe1 jack jill");
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_after_their_timeout() {
    let fixture = Fixture::new(16);
    let limits = ConnectionLimits::default();
    let register = fixture.register.clone();
    let watch = tokio::spawn(async move { register.watch().await });
    fixture.connect("nobody", 1);
    fixture.log_in("idle", 1, "jane");
    let busy = fixture.log_in("busy", 1, "joe").begin();
    tokio::time::sleep(limits.unauthenticated_idle - Duration::from_secs(1)).await;
    assert_eq!(fixture.open().await, "nobody idle busy");
    tokio::time::sleep(Duration::from_secs(7)).await; // connections are scanned every 5 s
    assert_eq!(fixture.open().await, "idle busy");
    tokio::time::sleep(limits.idle).await;
    assert_eq!(fixture.open().await, "busy");
    drop(busy);
    tokio::time::sleep(limits.idle + Duration::from_secs(6)).await;
    assert_eq!(fixture.open().await, "");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn only_http2_connections_close_after_a_request_without_credentials() {
    let fixture = Fixture::new(16);
    fixture.connect("first", 1).record_user(Some(&User::anonymous()), Version::HTTP_11);
    fixture.connect("second", 1).record_user(Some(&User::anonymous()), Version::HTTP_2);
    fixture.connect("third", 1).record_user(None, Version::HTTP_2);
    assert_eq!(fixture.open().await, "first");
}
