//! The limits of the system and its clock.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pintle_server::{Config, store_directory};
use rustix::process::{Resource, getrlimit};

use super::Finding;

const LIMITS: &str = "limits";
const CLOCK: &str = "clock";
/// A server with a lower limit of open files refuses connections early.
const FILES_WARNING: u64 = 4096;
/// An idle server needs about 20 MB; objects and requests need more.
const MEMORY_ERROR: u64 = 32 << 20;
const MEMORY_WARNING: u64 = 256 << 20;
/// The tolerated difference to the clock of another machine that wrote the files.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// 2025-01-01: a clock before that day was never set.
const CLOCK_MIN_SECONDS: u64 = 1_735_689_600;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    vec![open_files(), memory(), clock(config)]
}

fn open_files() -> Finding {
    const SUBJECT: &str = "open files";
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FILES_WARNING => Finding::warning(
            LIMITS,
            SUBJECT,
            format!("at most {limit} files and connections may be open"),
            "raise the limit: ulimit -n 65536, or LimitNOFILE= of a systemd unit",
        ),
        Some(limit) => Finding::ok(LIMITS, SUBJECT, format!("at most {limit}")),
        None => Finding::ok(LIMITS, SUBJECT, "no limit"),
    }
}

fn memory() -> Finding {
    const SUBJECT: &str = "memory";
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let cgroup = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let cgroup = cgroup.and_then(|text| text.trim().parse::<u64>().ok());
    let Some(bytes) = available.into_iter().chain(cgroup).min() else {
        return Finding::ok(LIMITS, SUBJECT, "unknown");
    };
    let message = format!("{} MiB are available", bytes >> 20);
    let advice = "stop other programs, or raise the limit of the container or the unit";
    if bytes < MEMORY_ERROR {
        Finding::error(LIMITS, SUBJECT, message, advice)
    } else if bytes < MEMORY_WARNING {
        Finding::warning(LIMITS, SUBJECT, message, advice)
    } else {
        Finding::ok(LIMITS, SUBJECT, message)
    }
}

/// The available bytes in the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Compares the clock with the newest file of the store and the certificates.
fn clock(config: &Config) -> Finding {
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let written = [store_directory(&config.data_dir), config.certificate_directory()]
        .iter()
        .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .max();
    let advice = "set the clock: a wrong clock makes tokens and certificates invalid";
    match written {
        _ if since < CLOCK_MIN_SECONDS => {
            Finding::error(CLOCK, "system time", "is before 2025", advice)
        }
        Some((time, path)) if time > now + CLOCK_TOLERANCE => {
            let ahead = time.duration_since(now).unwrap_or_default().as_secs();
            let message = format!("{} was written {ahead} s in the future", path.display());
            Finding::warning(CLOCK, "system time", message, advice)
        }
        _ => Finding::ok(CLOCK, "system time", "is after the last write"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:     123 kB\n"), Some(123 * 1024));
        assert_eq!(available("MemAvailable: many kB\n"), None);
        assert_eq!(available(""), None);
    }
}
