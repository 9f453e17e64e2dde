//! The log: readable lines on standard error.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log at a verbosity as kube-apiserver counts it.
pub(crate) fn start(verbosity: u8) {
    let level = match verbosity {
        0..=2 => LevelFilter::INFO,
        3..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Every crate of ours begins with this name; what libraries say is of interest only if it is bad.
    let filter = Targets::new().with_target("pintle", level).with_default(LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    tracing_subscriber::registry().with(lines).with(filter).init();
}
