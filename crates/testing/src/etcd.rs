//! Servers that keep their objects in a real etcd: each in a part of its own, in which nothing is yet.

mod member;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use member::Member;
use pintle_server::{Config, Etcd};

/// The variable that names an etcd for servers that would keep nothing: a URL. So tests that know nothing of
/// etcd run on one.
const VARIABLE: &str = "PINTLE_TEST_ETCD";

/// An etcd that servers of a test keep their objects in: the one that the environment names, also a kine; or
/// one of the test's own.
#[derive(Debug)]
pub struct Database {
    url: String,
    _own: Option<Member>,
}

impl Database {
    /// `None` where this machine has no etcd, which is said on standard output.
    ///
    /// # Errors
    /// If it does not start.
    pub fn find() -> io::Result<Option<Self>> {
        if let Some(url) = named() {
            return Ok(Some(Self { url, _own: None }));
        }
        let own = Member::start(&[])?;
        Ok(own.map(|member| Self { url: member.url().to_owned(), _own: Some(member) }))
    }

    /// A part of it in which nothing is kept yet.
    pub fn part(&self) -> Etcd {
        new_part(vec![self.url.clone()])
    }
}

/// A part of the etcd at these endpoints that nobody has used yet.
pub fn new_part(endpoints: Vec<String>) -> Etcd {
    static PARTS: AtomicUsize = AtomicUsize::new(0);
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Etcd { endpoints, prefix: format!("/registry-{now}-{number}"), ..Etcd::default() }
}

/// The etcd that the environment names, if it does: its URL.
fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|url| !url.is_empty())
}

/// The configuration of a server that would keep nothing, on the etcd that the environment names.
pub(crate) fn placed(config: Config) -> Config {
    match named() {
        Some(url) if config.ephemeral && config.etcd.is_none() => {
            Config { etcd: Some(new_part(vec![url])), ..config }
        }
        _ => config,
    }
}
