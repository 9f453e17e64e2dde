//! Servers that keep their objects in a real etcd: each in a part of its own, in which nothing is yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pintle_server::{Config, Etcd};

/// The variable that names an etcd for servers that would keep nothing: a URL. So tests that know nothing of
/// etcd run on one.
const VARIABLE: &str = "PINTLE_TEST_ETCD";

/// The etcd that the environment names, if it does: its URL.
pub fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|url| !url.is_empty())
}

/// A part of the etcd at a URL that nobody has used yet.
pub fn new_part(url: &str) -> Etcd {
    static PARTS: AtomicUsize = AtomicUsize::new(0);
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Etcd {
        endpoints: vec![url.to_owned()],
        prefix: format!("/registry-{now}-{number}"),
        ..Etcd::default()
    }
}

/// The configuration of a server that would keep nothing, on the etcd that the environment names.
pub(crate) fn placed(config: Config) -> Config {
    match named() {
        Some(url) if config.ephemeral && config.etcd.is_none() => {
            Config { etcd: Some(new_part(&url)), ..config }
        }
        _ => config,
    }
}
