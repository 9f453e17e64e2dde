//! The log: a line for each event, as text or as JSON.

mod json;

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::flags::{LogFormat, LogOptions};

/// The environment variable that sets levels by target: `pintle=info,pintle::requests=trace`.
const VARIABLE: &str = "RUST_LOG";
/// The prefix of this project's crates.
const OURS: &str = "pintle";
/// The target of request lines (`pintle_server`, `request_log`).
const REQUESTS: &str = "pintle::requests";

/// Starts the log with the levels of `RUST_LOG`, or else of kube-apiserver's verbosity.
pub(crate) fn start(options: LogOptions) {
    let LogOptions { verbosity, format, split } = options;
    let variable = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, wrong) = match variable.parse::<Targets>() {
        Ok(targets) if !variable.is_empty() => (completed(targets), None),
        Ok(_) => (of_verbosity(verbosity), None),
        Err(error) => (of_verbosity(verbosity), Some(error)),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(Streams { split });
    let lines = match format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.event_format(json::Lines).boxed(),
    };
    tracing_subscriber::registry().with(lines).with(filter).init();
    if let Some(error) = wrong {
        tracing::warn!(%error, "cannot parse {VARIABLE}; the level of -v is used instead");
    }
}

/// The levels of a verbosity. Libraries log only warnings and errors.
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

/// The verbosity from which on [`of_verbosity`] logs an event.
fn verbosity_of(metadata: &Metadata<'_>) -> u8 {
    match *metadata.level() {
        Level::DEBUG => 3,
        Level::TRACE if metadata.target() == REQUESTS => 5,
        Level::TRACE => 6,
        _ => 0,
    }
}

/// The variable's targets, with warnings and errors of all others.
fn completed(targets: Targets) -> Targets {
    match targets.default_level() {
        Some(_) => targets,
        None => targets.with_default(LevelFilter::WARN),
    }
}

/// The destinations of lines: standard error; with `split`, standard error for errors and standard
/// output for all other lines.
struct Streams {
    split: bool,
}

impl<'w> MakeWriter<'w> for Streams {
    type Writer = Box<dyn Write>;

    fn make_writer(&'w self) -> Self::Writer {
        Box::new(io::stderr())
    }

    fn make_writer_for(&'w self, metadata: &Metadata<'_>) -> Self::Writer {
        match self.split && *metadata.level() != Level::ERROR {
            true => Box::new(io::stdout()),
            false => self.make_writer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tracing_subscriber::registry::LookupSpan;

    use super::*;

    /// Whether a verbosity logs the events of a target at a level.
    fn logs(verbosity: u8, target: &str, level: Level) -> bool {
        of_verbosity(verbosity).would_enable(target, &level)
    }

    #[test]
    fn an_event_is_logged_from_its_verbosity_on() {
        struct Seen(Mutex<Vec<(String, Level, u8)>>);
        impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for &'static Seen {
            fn on_event(
                &self,
                event: &tracing::Event<'_>,
                _: tracing_subscriber::layer::Context<'_, S>,
            ) {
                let metadata = event.metadata();
                let row = (metadata.target().to_owned(), *metadata.level(), verbosity_of(metadata));
                self.0.lock().push(row);
            }
        }
        static SEEN: Seen = Seen(Mutex::new(Vec::new()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(&SEEN), || {
            tracing::error!(target: OURS, "");
            tracing::warn!(target: OURS, "");
            tracing::info!(target: OURS, "");
            tracing::debug!(target: OURS, "");
            tracing::trace!(target: OURS, "");
            tracing::debug!(target: REQUESTS, "");
            tracing::trace!(target: REQUESTS, "");
        });
        let rows = SEEN.0.lock();
        assert_eq!(rows.len(), 7);
        for (target, level, verbosity) in rows.iter() {
            assert!(logs(*verbosity, target, *level), "{target} {level} {verbosity}");
            let quieter = verbosity.checked_sub(1);
            assert!(!quieter.is_some_and(|one| logs(one, target, *level)), "{target} {level}");
        }
    }
}
