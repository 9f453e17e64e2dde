//! The rate and the delay of events that many watchers of one collection receive.
//!
//! Each write contains the time at which it was sent, so a watcher can compute the delay of each
//! event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use memchr::memmem;
use tokio::task::JoinHandle;

use super::{Extent, Meter, Namespace, fill};
use crate::call::Call;
use crate::load::{Client, Figures, Worker, run};
use crate::objects::Sample;
use crate::process::Running;
use crate::report::Report;

/// The number of concurrent writers, each with its own object.
const WRITERS: usize = 4;
/// The pause between two writes when the delay is measured.
const INTERVAL: Duration = Duration::from_millis(20);
/// The number of digits of a write's time.
const TIME_DIGITS: usize = 12;
/// More watchers than this read in small pieces, which take less memory.
const LEAN_FROM: usize = 1000;
/// How long a watcher waits for the next event before it ends without the rest.
const DELAY_MAX: Duration = Duration::from_secs(20);

/// How often a watcher without events checks whether it has received all of them.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Measures the delivery to each number of watchers.
pub async fn measure(
    namespace: &Namespace,
    running: Option<&Running>,
    sample: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    fill(namespace, sample, WRITERS, &Arc::new(AtomicU64::new(0))).await?;
    for count in &extent.watchers {
        let plural = if *count == 1 { "" } else { "s" };
        let json = Form::JSON;
        let paced =
            deliveries(namespace, sample, json, *count, extent.time, Some(INTERVAL)).await?;
        let name = format!("delivery to {count} watcher{plural}, 50 writes/s");
        report.add_rate(name, &paced);
        let meter = Meter::start(running)?;
        let unpaced = deliveries(namespace, sample, json, *count, extent.time, None).await?;
        let name = format!("delivery to {count} watcher{plural}, all out");
        report.add_rate(&name, &unpaced);
        meter.add(report, &name, unpaced.count)?;
    }
    Ok(())
}

/// Measures watches as kubelets open them, each of the pods of one node, while pods of all nodes
/// change.
pub async fn measure_nodes(
    namespace: &Namespace,
    running: Option<&Running>,
    pod: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let pod = pod.on_nodes()?;
    for count in extent.watchers.iter().copied() {
        fill(namespace, &pod, count, &Arc::new(AtomicU64::new(0))).await?;
        let clock = Instant::now();
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let path = namespace.path(pod.resource);
        let query = |node: usize| format!("fieldSelector=spec.nodeName%3D{}", Sample::node(node));
        let watchers = (0..count).map(|node| format!("{path}?watch=1&{}", query(node)));
        let version = newest(namespace, &pod).await?;
        let paths = watchers.map(|path| format!("{path}&resourceVersion={version}")).collect();
        let watchers = open(namespace, paths, Form::JSON, clock, &end).await?;
        let (start, meter) = (Instant::now(), Meter::start(running)?);
        let clients = Client::connect(&namespace.server, WRITERS, false).await?;
        let next = Arc::new(AtomicU64::new(0));
        let workers = clients.into_iter().map(|client| {
            let (path, next) = (format!("{path}/a{}", crate::call::NAME), next.clone());
            let patch = "application/merge-patch+json";
            let now = move |call: &mut Call| {
                call.name(next.fetch_add(1, Ordering::Relaxed) % count as u64);
                call.value(u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX));
                true
            };
            let call = namespace.server.call("PATCH", &path, patch, &pod.patch);
            Worker { client, call, next: Box::new(now) }
        });
        let written = run(workers.collect(), extent.time).await?;
        let name = format!("patches of pods, {count} watchers of one node each");
        report.add_rate(&name, &written);
        meter.add(report, &name, written.count)?;
        end.store(0, Ordering::Release);
        let mut latencies = Vec::new();
        for watcher in watchers {
            latencies.extend(watcher.await??.0);
        }
        let name = format!("delivery to {count} watchers of one node each");
        report.add_rate(name, &Figures::of(latencies, start.elapsed()));
    }
    Ok(())
}

/// Opens watchers, writes for a time, and returns when all events have arrived, or when a watcher
/// has waited `DELAY_MAX` for one.
pub async fn deliveries(
    namespace: &Namespace,
    sample: &Sample,
    form: Form,
    watchers: usize,
    time: Duration,
    interval: Option<Duration>,
) -> Result<Figures> {
    let clock = Instant::now();
    let expected = Arc::new(AtomicU64::new(u64::MAX));
    let (path, version) = (namespace.path(sample.resource), newest(namespace, sample).await?);
    let paths = vec![format!("{path}?watch=1&resourceVersion={version}"); watchers];
    let watchers = open(namespace, paths, form, clock, &expected).await?;
    let start = Instant::now();
    let writes = write(namespace, sample, clock, time, interval).await?;
    // One more write wakes the watchers that wait, so that they read `expected`.
    expected.store(writes + 1, Ordering::Release);
    write(namespace, sample, clock, Duration::ZERO, Some(INTERVAL)).await?;
    let mut latencies = Vec::new();
    let mut last = start;
    for watcher in watchers {
        let (seen, end) = watcher.await??;
        latencies.extend(seen);
        last = last.max(end);
    }
    Ok(Figures::of(latencies, last - start))
}

pub(super) type Watcher = JoinHandle<Result<(Vec<u32>, Instant)>>;

/// The newest resource version of a collection.
pub(super) async fn newest(namespace: &Namespace, sample: &Sample) -> Result<String> {
    let path = namespace.path(sample.resource) + "?limit=1";
    let (_, list) = namespace.server.ask("GET", &path, "", &[]).await?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

/// Opens a watch of each path. Each ends when it has received the expected number of events, or
/// none for `DELAY_MAX`.
pub(super) async fn open(
    namespace: &Namespace,
    paths: Vec<String>,
    form: Form,
    clock: Instant,
    expected: &Arc<AtomicU64>,
) -> Result<Vec<Watcher>> {
    let count = paths.len();
    let mut watchers = Vec::with_capacity(count);
    for path in paths {
        let mut connection = match count > LEAN_FROM {
            true => namespace.watched.connect_lean().await?,
            false => namespace.watched.connect().await?,
        };
        let call = namespace.watched.call_with("GET", &path, "", form.accept, "");
        connection.open_watch(call.bytes()).await?;
        let expected = Arc::clone(expected);
        watchers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            let mut end = Instant::now();
            let mut bytes = Vec::new();
            let mut silent = Duration::ZERO;
            while (seen.len() as u64) < expected.load(Ordering::Acquire) {
                let chunk = tokio::time::timeout(CHECK_INTERVAL, connection.chunk(&mut bytes));
                let Ok(open) = chunk.await else {
                    silent += CHECK_INTERVAL;
                    if silent >= DELAY_MAX { break } else { continue }
                };
                silent = Duration::ZERO;
                anyhow::ensure!(open?, "a watch ended");
                end = Instant::now();
                record_delays(form.encoding, &mut bytes, clock, &mut seen);
            }
            Ok((seen, end))
        }));
    }
    Ok(watchers)
}

/// The media type that watchers request.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name in the report.
    pub name: &'static str,
    /// The `Accept` header.
    pub accept: &'static str,
    /// The encoding of the events.
    pub encoding: Encoding,
}

impl Form {
    /// Whole objects in JSON.
    pub const JSON: Self = Self { name: "JSON", accept: "", encoding: Encoding::Json };
}

/// The encoding of events.
#[derive(Clone, Copy, Debug)]
pub enum Encoding {
    /// JSON, one event per line.
    Json,
    /// Protobuf, each event after its length.
    Protobuf,
    /// CBOR, a sequence of events.
    Cbor,
}

impl Encoding {
    /// The length of the complete events at the beginning of the bytes.
    fn complete_length(self, bytes: &[u8]) -> usize {
        match self {
            Self::Json => memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1),
            Self::Protobuf => {
                let mut end = 0;
                while let Some(length) = bytes[end..].first_chunk::<4>() {
                    let next = end + 4 + u32::from_be_bytes(*length) as usize;
                    if next > bytes.len() {
                        break;
                    }
                    end = next;
                }
                end
            }
            // CBOR has no separators. This measurement takes the time's last digit for an event's
            // end.
            Self::Cbor => {
                let before = self.before_time();
                let last = memmem::rfind(bytes, before).map(|at| at + before.len() + TIME_DIGITS);
                last.filter(|end| *end <= bytes.len()).unwrap_or(0)
            }
        }
    }

    /// The bytes before the time in an object.
    const fn before_time(self) -> &'static [u8] {
        match self {
            Self::Json => b"\"changing\":\"",
            Self::Protobuf => b"changing\x12\x0c",
            Self::Cbor => b"\x48changing\x4c",
        }
    }
}

/// Removes complete events from the bytes and records the delay of each.
fn record_delays(encoding: Encoding, bytes: &mut Vec<u8>, clock: Instant, seen: &mut Vec<u32>) {
    let end = encoding.complete_length(bytes);
    let now = u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX);
    let before = encoding.before_time();
    for at in memmem::find_iter(&bytes[..end], before) {
        let Some(sent) = sent_micros(&bytes[at + before.len()..]) else { continue };
        seen.push(u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
    }
    bytes.drain(..end);
}

/// The time at the beginning of the bytes, in microseconds.
fn sent_micros(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes.get(..TIME_DIGITS)?).ok()?.parse().ok()
}

/// Writes for a time; returns the number of writes.
async fn write(
    namespace: &Namespace,
    sample: &Sample,
    clock: Instant,
    time: Duration,
    interval: Option<Duration>,
) -> Result<u64> {
    let writers = if interval.is_some() { 1 } else { WRITERS };
    let clients = Client::connect(&namespace.server, writers, false).await?;
    let call = |number: u64| {
        let path = format!("{}/a{}", namespace.path(sample.resource), crate::call::digits(number));
        namespace.server.call("PATCH", &path, "application/merge-patch+json", &sample.patch)
    };
    let now = move |call: &mut Call| {
        call.value(u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX));
        true
    };
    let Some(interval) = interval else {
        let workers = clients.into_iter().zip(0..).map(|(client, number)| Worker {
            client,
            call: call(number),
            next: Box::new(now),
        });
        let figures = run(workers.collect(), time).await?;
        return Ok(figures.count as u64);
    };
    let mut writes = 0;
    let start = Instant::now();
    let mut ticks = tokio::time::interval(interval);
    let mut call = call(0);
    for mut client in clients {
        loop {
            ticks.tick().await;
            now(&mut call);
            let answer = client.exchange(&call).await?;
            anyhow::ensure!(answer.status == 200, "a patch was answered {}", answer.status);
            writes += 1;
            if start.elapsed() >= time {
                break;
            }
        }
    }
    Ok(writes)
}
