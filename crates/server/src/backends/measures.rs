//! Measures of connections through proxies (`--egress-selector-config-file`).

use std::time::Duration;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

/// Upstream's buckets of dials.
pub(crate) static DIAL_BOUNDS: [u64; 6] = nanoseconds([0.005, 0.025, 0.1, 0.5, 2.5, 12.5]);

/// The protocol label of all proxies.
const PROTOCOL: &str = "http_connect";

/// The measures of connections, by the transport (`tcp` or `uds`) to the proxy.
pub(crate) struct Dials {
    pub(crate) started: Series<2, Counter>,
    pub(crate) durations: Series<2, Distribution>,
    pub(crate) failed: Series<3, Counter>,
}

/// The stage that failed.
#[derive(Clone, Copy)]
pub(crate) enum DialStage {
    /// The connection to the proxy.
    Connect,
    /// The proxy's connection to the backend.
    Proxy,
}

impl Default for Dials {
    fn default() -> Self {
        let (started, failed) = (Series::default(), Series::default());
        Self { started, durations: Series::new(|| Distribution::new(&DIAL_BOUNDS)), failed }
    }
}

impl Dials {
    /// Counts a dial.
    pub(crate) fn begin(&self, transport: &str) {
        self.started.with([PROTOCOL, transport]).add(1);
    }

    /// Observes the time of a dial.
    pub(crate) fn took(&self, transport: &str, duration: Duration) {
        self.durations.with([PROTOCOL, transport]).took(duration);
    }

    /// Counts a failed dial.
    pub(crate) fn fail(&self, transport: &str, stage: DialStage) {
        let stage = match stage {
            DialStage::Connect => "connect",
            DialStage::Proxy => "proxy",
        };
        self.failed.with([PROTOCOL, stage, transport]).add(1);
    }
}
