//! Counters, gauges and histograms, and the families that hold them by their labels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

/// So many series a family may have; further ones are counted together, without labels.
const SERIES_MAX: usize = 16_384;

/// Upstream's buckets of request durations, in milliseconds.
const BUCKETS_MS: [u64; 23] = [
    5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
    10_000, 15_000, 20_000, 30_000, 45_000, 60_000,
];

/// What a family holds.
pub(crate) trait Metric: Default {
    /// The word in the `TYPE` line.
    const KIND: &'static str;

    /// Writes the samples of one series.
    fn write(&self, name: &str, labels: &str, out: &mut String);
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts.
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Default)]
pub(crate) struct Gauge(AtomicI64);

impl Gauge {
    /// Changes the number.
    pub(crate) fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// Replaces the number.
    pub(crate) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// How durations are distributed.
#[derive(Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS_MS.len()],
    count: AtomicU64,
    sum_micros: AtomicU64,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let at = BUCKETS_MS.partition_point(|bound| bound * 1000 < micros);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Metric for Counter {
    const KIND: &'static str = "counter";

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        sample(name, labels, self.get(), out);
    }
}

impl Metric for Gauge {
    const KIND: &'static str = "gauge";

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        sample(name, labels, self.0.load(Ordering::Relaxed), out);
    }
}

impl Metric for Histogram {
    const KIND: &'static str = "histogram";

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        let bucket_name = format!("{name}_bucket");
        let comma = if labels.is_empty() { "" } else { "," };
        let mut below = 0;
        for (bound_ms, bucket) in BUCKETS_MS.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let bound = milliseconds(*bound_ms);
            sample(&bucket_name, &format!("{labels}{comma}le=\"{bound}\""), below, out);
        }
        let count = self.count.load(Ordering::Relaxed);
        sample(&bucket_name, &format!("{labels}{comma}le=\"+Inf\""), count, out);
        let micros = self.sum_micros.load(Ordering::Relaxed);
        let sum = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        sample(&format!("{name}_sum"), labels, sum, out);
        sample(&format!("{name}_count"), labels, count, out);
    }
}

/// Milliseconds as seconds, without needless digits.
fn milliseconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn sample(name: &str, labels: &str, value: impl std::fmt::Display, out: &mut String) {
    let written = if labels.is_empty() {
        writeln!(out, "{name} {value}")
    } else {
        writeln!(out, "{name}{{{labels}}} {value}")
    };
    written.expect("writing to a String cannot fail");
}

/// Adds a label to what stands between the braces.
pub(crate) fn label(text: &mut String, key: &str, value: &str) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(key);
    text.push_str("=\"");
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// The series of one name, by their labels as they stand between the braces.
pub(crate) struct Family<M> {
    name: &'static str,
    help: &'static str,
    series: RwLock<BTreeMap<String, Arc<M>>>,
}

impl<M: Metric> Family<M> {
    /// No series yet.
    pub(crate) const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, series: RwLock::new(BTreeMap::new()) }
    }

    /// The series with these labels.
    pub(crate) fn with(&self, labels: &str) -> Arc<M> {
        if let Some(metric) = self.series.read().get(labels) {
            return metric.clone();
        }
        let mut series = self.series.write();
        let labels = if series.len() < SERIES_MAX { labels } else { "" };
        series.entry(labels.to_owned()).or_default().clone()
    }

    /// Writes every series, with their heading.
    pub(crate) fn write(&self, out: &mut String) {
        self.write_as(self.name, self.help, |labels| Some(labels), out);
    }

    /// Writes the series under another name: those to which `relabel` gives labels.
    pub(crate) fn write_as(
        &self,
        name: &str,
        help: &str,
        relabel: impl for<'l> Fn(&'l str) -> Option<&'l str>,
        out: &mut String,
    ) {
        let series = self.series.read();
        if series.is_empty() {
            return;
        }
        let kind = M::KIND;
        write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
            .expect("writing to a String cannot fail");
        for (labels, metric) in series.iter() {
            if let Some(labels) = relabel(labels) {
                metric.write(name, labels, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets() {
        let histogram = Histogram::default();
        for ms in [1, 5, 6, 70_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        let mut out = String::new();
        histogram.write("x", "a=\"b\"", &mut out);
        let has = |line: &str| out.lines().any(|l| l == line);
        assert!(has("x_bucket{a=\"b\",le=\"0.005\"} 2"), "{out}");
        assert!(has("x_bucket{a=\"b\",le=\"0.025\"} 3"));
        assert!(has("x_bucket{a=\"b\",le=\"60\"} 3"));
        assert!(has("x_bucket{a=\"b\",le=\"+Inf\"} 4"));
        assert!(has("x_sum{a=\"b\"} 70.012000"));
        assert!(has("x_count{a=\"b\"} 4"));
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = String::new();
        label(&mut text, "a", "x\"\\\n");
        label(&mut text, "b", "");
        assert_eq!(text, "a=\"x\\\"\\\\\\n\",b=\"\"");
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let family = Family::<Counter>::new("x", "help");
        for n in 0..SERIES_MAX + 10 {
            family.with(&format!("n=\"{n}\"")).add(1);
        }
        assert_eq!(family.series.read().len(), SERIES_MAX + 1);
        assert_eq!(family.with("").get(), 10);
    }
}
