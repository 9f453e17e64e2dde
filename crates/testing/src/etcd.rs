//! Servers that store their objects in a real etcd, each under a new key prefix.

mod member;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use member::Member;
use pintle_server::{Config, Etcd};

/// The environment variable with the URL of an etcd. Servers that would keep their objects only in
/// memory use this etcd, so that all tests can run on etcd unchanged.
const VARIABLE: &str = "PINTLE_TEST_ETCD";

/// The etcd of a test: the one that the environment names (kine works, too), or a new one.
#[derive(Debug)]
pub struct Database {
    url: String,
    _own: Option<Member>,
}

impl Database {
    /// Finds or starts an etcd. If this machine has none, returns `None` and prints the reason on
    /// standard output.
    ///
    /// # Errors
    /// If etcd does not start.
    pub fn find() -> io::Result<Option<Self>> {
        if let Some(url) = named() {
            return Ok(Some(Self { url, _own: None }));
        }
        let own = Member::start(&[])?;
        Ok(own.map(|member| Self { url: member.url().to_owned(), _own: Some(member) }))
    }

    /// A configuration with a new key prefix in this etcd.
    pub fn part(&self) -> Etcd {
        new_part(vec![self.url.clone()])
    }
}

/// A configuration with a new key prefix in the etcd at these endpoints.
pub fn new_part(endpoints: Vec<String>) -> Etcd {
    static PARTS: AtomicUsize = AtomicUsize::new(0);
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Etcd { endpoints, prefix: format!("/registry-{now}-{number}"), ..Etcd::default() }
}

/// The URL of the etcd that the environment names, if any.
fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|url| !url.is_empty())
}

/// Makes a server that would keep its objects only in memory use the etcd that the environment
/// names.
pub(crate) fn with_named_etcd(config: Config) -> Config {
    match named() {
        Some(url) if config.ephemeral && config.etcd.is_none() => {
            Config { etcd: Some(new_part(vec![url])), ..config }
        }
        _ => config,
    }
}
