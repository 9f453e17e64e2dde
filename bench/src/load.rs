//! A closed loop: each client sends its next request when it has the response to the last one.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::call::Call;
use crate::http2::Http2;
use crate::server::{Answer, Connection, Server};

/// The largest number of clients that share an HTTP/2 connection.
const STREAMS: usize = 16;

/// A client, over either protocol.
pub enum Client {
    /// Its own connection.
    One(Connection),
    /// A stream of a shared connection.
    Two(Http2),
}

impl Client {
    /// Connects this many clients.
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

    /// Sends a request and reads its response.
    pub async fn exchange(&mut self, call: &Call) -> Result<Answer> {
        match self {
            Self::One(connection) => connection.exchange(call.bytes(), None).await,
            Self::Two(connection) => connection.exchange(call).await,
        }
    }
}

/// Prepares the next request; false when there are no more.
pub type Next = Box<dyn FnMut(&mut Call) -> bool + Send>;

/// The work of one client.
pub struct Worker {
    /// Its connection.
    pub client: Client,
    /// Its request.
    pub call: Call,
    /// Changes the request before each send.
    pub next: Next,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The number of successful requests.
    pub count: usize,
    /// The number of other responses.
    pub refused: usize,
    /// The number of bytes in the bodies of responses.
    pub body_bytes: usize,
    /// From the first request to the last response.
    pub took: Duration,
    /// In microseconds, sorted.
    latencies_us: Vec<u32>,
}

impl Figures {
    /// The figures of successful requests with these latencies, in any order.
    pub fn of(mut latencies_us: Vec<u32>, took: Duration) -> Self {
        latencies_us.sort_unstable();
        Self { count: latencies_us.len(), took, latencies_us, ..Self::default() }
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Megabytes of bodies per second.
    pub fn body_rate_mb(&self) -> f64 {
        self.body_bytes as f64 / 1e6 / self.took.as_secs_f64().max(1e-9)
    }

    /// The latency below which this share of the requests was, in microseconds.
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

/// Runs the workers until the time is over or no work is left. More refused than successful
/// requests are an error.
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
