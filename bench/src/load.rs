//! A closed loop: each of many clients sends its next request when it has the answer to its last.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::call::Call;
use crate::http2::Http2;
use crate::server::{Answer, Connection, Server};

/// How many clients share an HTTP/2 connection.
const STREAMS: usize = 16;

/// One who sends requests, over either protocol.
pub enum Client {
    /// A connection of its own.
    One(Connection),
    /// A part of a shared one.
    Two(Http2),
}

impl Client {
    /// This many, connected.
    pub async fn connect(server: &Server, count: usize, http2: bool) -> Result<Vec<Self>> {
        let mut clients = Vec::with_capacity(count);
        let mut shared = None;
        for number in 0..count {
            if !http2 {
                clients.push(Self::One(server.connect().await?));
                continue;
            }
            let connection = match shared.take().filter(|_| number % STREAMS != 0) {
                Some(connection) => connection,
                None => Http2::connect(server).await?,
            };
            shared = Some(connection.clone());
            clients.push(Self::Two(connection));
        }
        Ok(clients)
    }

    /// Sends a request and reads its answer.
    pub async fn exchange(&mut self, call: &Call) -> Result<Answer> {
        match self {
            Self::One(connection) => connection.exchange(call.bytes(), None).await,
            Self::Two(connection) => connection.exchange(call).await,
        }
    }
}

/// Prepares the next request; false when there is nothing more to do.
pub type Next = Box<dyn FnMut(&mut Call) -> bool + Send>;

/// What one client does.
pub struct Worker {
    /// Its connection.
    pub client: Client,
    /// Its request.
    pub call: Call,
    /// What changes from one request to the next.
    pub next: Next,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How many succeeded.
    pub count: usize,
    /// How many were answered otherwise.
    pub refused: usize,
    /// How many bytes the bodies of the answers had.
    pub body_bytes: usize,
    /// From the first request to the last answer.
    pub took: Duration,
    /// In microseconds, sorted.
    latencies_us: Vec<u32>,
}

impl Figures {
    /// From latencies in any order.
    pub fn of(mut latencies_us: Vec<u32>, took: Duration) -> Self {
        latencies_us.sort_unstable();
        Self { count: latencies_us.len(), took, latencies_us, ..Self::default() }
    }

    /// How many a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Megabytes of body a second.
    pub fn body_rate_mb(&self) -> f64 {
        self.body_bytes as f64 / 1e6 / self.took.as_secs_f64().max(1e-9)
    }

    /// The latency that this share of all stayed below, in microseconds.
    pub fn percentile_us(&self, share: f64) -> u32 {
        let last = self.latencies_us.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.latencies_us.get(index).copied().unwrap_or_default()
    }

    /// The longest latency, in microseconds.
    pub fn max_us(&self) -> u32 {
        self.latencies_us.last().copied().unwrap_or_default()
    }
}

/// Lets the workers work until the time is over or nothing is left to do.
pub async fn run(workers: Vec<Worker>, limit: Duration) -> Result<Figures> {
    let start = Instant::now();
    let end = start + limit;
    let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(work(worker, end))).collect();
    let mut all = Figures::default();
    let mut latencies = Vec::new();
    for task in tasks {
        let part = task.await??;
        all.refused += part.refused;
        all.body_bytes += part.body_bytes;
        latencies.extend(part.latencies_us);
    }
    let took = start.elapsed();
    if all.refused > latencies.len() {
        bail!("{} of {} requests were refused", all.refused, all.refused + latencies.len());
    }
    let figures = Figures::of(latencies, took);
    Ok(Figures { refused: all.refused, body_bytes: all.body_bytes, ..figures })
}

async fn work(mut worker: Worker, end: Instant) -> Result<Figures> {
    let mut figures = Figures::default();
    while Instant::now() < end && (worker.next)(&mut worker.call) {
        let start = Instant::now();
        let answer = worker.client.exchange(&worker.call).await?;
        figures.body_bytes += answer.body_bytes;
        if answer.status < 300 {
            let latency = start.elapsed().as_micros();
            figures.latencies_us.push(u32::try_from(latency).unwrap_or(u32::MAX));
        } else {
            figures.refused += 1;
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all() {
        let figures = Figures::of((1..=101).rev().collect(), Duration::from_secs(2));
        assert_eq!(figures.percentile_us(0.5), 51);
        assert_eq!(figures.percentile_us(0.99), 100);
        assert_eq!(figures.max_us(), 101);
        assert!((figures.rate() - 50.5).abs() < 0.01);
        assert_eq!(Figures::default().percentile_us(0.5), 0);
    }
}
