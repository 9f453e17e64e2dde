//! The log: text lines on standard error.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that sets levels by target: `pintle=info,pintle::requests=trace`.
const VARIABLE: &str = "RUST_LOG";
/// The prefix of this project's crates.
const OURS: &str = "pintle";
/// The target of request lines (`pintle_server`, `request_log`).
const REQUESTS: &str = "pintle::requests";

/// Starts the log with the levels of `RUST_LOG`, or else of kube-apiserver's verbosity.
pub(crate) fn start(verbosity: u8) {
    let said = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, wrong) = match said.parse::<Targets>() {
        Ok(targets) if !said.is_empty() => (completed(targets), None),
        Ok(_) => (of_verbosity(verbosity), None),
        Err(error) => (of_verbosity(verbosity), Some(error)),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    tracing_subscriber::registry().with(lines).with(filter).init();
    if let Some(error) = wrong {
        tracing::warn!(%error, "cannot parse {VARIABLE}; the level of -v is used instead");
    }
}

/// The levels of a verbosity. Of libraries only warnings are logged.
fn of_verbosity(verbosity: u8) -> Targets {
    let (ours, requests) = match verbosity {
        0..=2 => (LevelFilter::INFO, LevelFilter::INFO),
        3..=4 => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        5 => (LevelFilter::DEBUG, LevelFilter::TRACE),
        _ => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    let targets = Targets::new().with_target(OURS, ours).with_target(REQUESTS, requests);
    targets.with_default(LevelFilter::WARN)
}

/// The variable's targets, with warnings of all others.
fn completed(targets: Targets) -> Targets {
    match targets.default_level() {
        Some(_) => targets,
        None => targets.with_default(LevelFilter::WARN),
    }
}
