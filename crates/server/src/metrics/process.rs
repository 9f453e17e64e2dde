//! What the operating system says of this process, read from `/proc`; nothing where there is none.

use std::fs;

use super::family::{Counter, Family, Gauge, Metric};

/// Linux's clock ticks a second; fixed for user space.
const TICKS_PER_SECOND: u64 = 100;
const PAGE_BYTES: i64 = 4096;

/// Writes the `process_…` metrics.
pub(super) fn write(started_at_unix_seconds: i64, out: &mut String) {
    gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        started_at_unix_seconds,
        out,
    );
    if let Some(ticks) = cpu_ticks() {
        let help = "Total user and system CPU time spent in seconds.";
        let family = Family::<CpuSeconds>::new("process_cpu_seconds_total", help);
        family.with("").0.add(ticks);
        family.write(out);
    }
    if let Some((virtual_bytes, resident_bytes)) = memory() {
        let help = "Virtual memory size in bytes.";
        gauge("process_virtual_memory_bytes", help, virtual_bytes, out);
        let help = "Resident memory size in bytes.";
        gauge("process_resident_memory_bytes", help, resident_bytes, out);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        let open = i64::try_from(entries.count()).unwrap_or(i64::MAX);
        gauge("process_open_fds", "Number of open file descriptors.", open, out);
    }
    if let Some(most) = open_files_max() {
        gauge("process_max_fds", "Maximum number of open file descriptors.", most, out);
    }
}

/// How many files may be open; nothing where there is no limit.
fn open_files_max() -> Option<i64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    soft.split_whitespace().next()?.parse().ok()
}

/// Ticks, shown as seconds.
#[derive(Default)]
struct CpuSeconds(Counter);

impl Metric for CpuSeconds {
    const KIND: &'static str = "counter";

    fn write(&self, name: &str, _labels: &str, out: &mut String) {
        let ticks = self.0.get();
        let (seconds, rest) = (ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND);
        out.push_str(&format!("{name} {seconds}.{rest:02}\n"));
    }
}

fn gauge(name: &'static str, help: &'static str, value: i64, out: &mut String) {
    let family = Family::<Gauge>::new(name, help);
    family.with("").set(value);
    family.write(out);
}

fn cpu_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the command in parentheses and may hold spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn memory() -> Option<(i64, i64)> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split_whitespace();
    let mut bytes = || Some(pages.next()?.parse::<i64>().ok()? * PAGE_BYTES);
    Some((bytes()?, bytes()?))
}
