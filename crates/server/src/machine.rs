//! The machine's time, time zone, random bytes and host name, and the addresses of its network
//! interfaces.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pintle_registry::request::Now;
use zeroize::Zeroize as _;

/// The current time.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { unix_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
}

/// Fills `bytes` with random bytes from the operating system. Each thread gets them in advance for
/// several calls: each create needs 16 bytes for a uid, and a system call for each uid would be
/// slow.
pub(crate) fn random(bytes: &mut [u8]) {
    let fill = |bytes: &mut [u8]| {
        getrandom::fill(bytes).expect("the operating system provides random bytes");
    };
    RANDOM.with_borrow_mut(|unused| {
        if bytes.len() > RANDOM_BYTES {
            return fill(bytes);
        }
        if unused.len() < bytes.len() {
            // `fresh` becomes `unused` only after it is filled, so that no call returns its zeros
            // if `fill` panics.
            let mut fresh = vec![0; RANDOM_BYTES];
            fill(&mut fresh);
            *unused = fresh;
        }
        let rest = unused.len() - bytes.len();
        bytes.copy_from_slice(&unused[rest..]);
        unused[rest..].zeroize(); // the bytes may become a secret, so no copy stays here
        unused.truncate(rest);
    });
}

/// The most random bytes that a thread gets from the operating system in advance.
const RANDOM_BYTES: usize = 512;

thread_local! {
    /// Random bytes that no call has returned yet.
    static RANDOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The host name; `localhost` if it is not known.
pub(crate) fn hostname() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let given = read.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match given.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// The rules of the local time zone, as in a file of the time zone database, found as Go finds them
/// (`initLocal` of `time`); `None` for UTC, or if there is no such file.
pub(crate) fn time_zone() -> Option<Vec<u8>> {
    const FOLDERS: [&str; 4] =
        ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"];
    let Some(named) = std::env::var_os("TZ") else { return std::fs::read("/etc/localtime").ok() };
    let named = named.to_string_lossy();
    let named = named.strip_prefix(':').unwrap_or(&named);
    match named {
        "" | "UTC" => None,
        path if path.starts_with('/') => std::fs::read(path).ok(),
        name => FOLDERS.iter().find_map(|folder| std::fs::read(Path::new(folder).join(name)).ok()),
    }
}

/// The addresses of the network interfaces; none if the system does not list them.
pub fn addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().map(if_addrs::Interface::ip).collect()
}
