//! Writes the metrics of the process from `/proc`. Where `/proc` does not exist, there is only the
//! start time.

use std::fs;

use super::families as f;
use super::family::Page;

/// The clock ticks per second in `/proc`, which Linux fixes for user space.
const TICKS_PER_SECOND: u64 = 100;

/// Writes the `process_…` metrics.
pub(super) fn write(started_at_unix_seconds: i64, page: &mut Page) {
    page.single(&f::START_TIME, started_at_unix_seconds);
    if let Some(ticks) = cpu_ticks() {
        let (seconds, rest) = (ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND);
        page.single(&f::CPU_SECONDS, format_args!("{seconds}.{rest:02}"));
    }
    if let Some((virtual_bytes, resident_bytes)) = memory() {
        page.single(&f::VIRTUAL_MEMORY, virtual_bytes);
        page.single(&f::RESIDENT_MEMORY, resident_bytes);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        page.single(&f::OPEN_FILES, entries.count());
    }
    if let Some((received, sent)) = network() {
        page.single(&f::NETWORK_RECEIVED, received);
        page.single(&f::NETWORK_SENT, sent);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    for (family, name) in
        [(&f::OPEN_FILES_MAX, "Max open files"), (&f::VIRTUAL_MEMORY_MAX, "Max address space")]
    {
        if let Some(limit) = soft_limit(&limits, name) {
            page.single(family, limit);
        }
    }
}

/// A soft limit of the process; `u64::MAX` if unlimited, as in Go. `None` if `limits` does not name
/// it.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let soft = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match soft.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn cpu_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the command in parentheses, which may contain spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn memory() -> Option<(u64, u64)> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split_whitespace();
    let page = rustix::param::page_size() as u64;
    let mut bytes = || Some(pages.next()?.parse::<u64>().ok()? * page);
    Some((bytes()?, bytes()?))
}

/// Bytes received and sent. The file has a line of names above a line of values.
fn network() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/net/netstat").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let of = |name: &str| {
        let at = names.split(' ').position(|known| known == name)?;
        numbers.split(' ').nth(at)?.parse().ok()
    };
    Some((of("InOctets")?, of("OutOctets")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max open files            1024      4096   files\n\
                      Max address space         unlimited unlimited bytes\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(soft_limit(limits, "Max address space"), Some(u64::MAX));
        assert_eq!(soft_limit(limits, "Max stack size"), None);
    }
}
