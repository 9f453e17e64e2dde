//! Events as JSON, a line each, with the members of kube-apiserver's `--logging-format=json`
//! (upstream: `component-base/logs/json`): `ts` in milliseconds since 1970, `caller`, `msg`, `v`,
//! and the event's own fields. An error has no `v`; the field `error` is `err`.
//!
//! Invariant: a line is one JSON object, whatever the fields contain.

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use pintle_value::json;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::verbosity_of;

/// The field of an event's message.
const MESSAGE: &str = "message";

/// The format.
pub(super) struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        writeln!(writer, "{}", line(now.as_secs_f64() * 1000.0, event))
    }
}

/// The line of an event at a time in milliseconds.
fn line(at_ms: f64, event: &Event<'_>) -> String {
    let metadata = event.metadata();
    let mut members = Members::default();
    event.record(&mut members);
    let mut head = Members::default();
    head.raw("ts", at_ms);
    if let (Some(file), Some(line)) = (metadata.file(), metadata.line()) {
        head.text("caller", &format!("{}:{line}", caller(file)));
    }
    head.text("msg", &members.message);
    if *metadata.level() != Level::ERROR {
        head.raw("v", verbosity_of(metadata));
    }
    let separator = if members.json.is_empty() { "" } else { "," };
    format!("{{{}{separator}{}}}", head.json, members.json)
}

/// A source file without the folders that all have: `server/request_log.rs`.
fn caller(file: &str) -> String {
    file.trim_start_matches("crates/").replacen("src/", "", 1)
}

/// The members of a JSON object, as text.
#[derive(Default)]
struct Members {
    json: String,
    message: String,
}

impl Members {
    fn key(&mut self, name: &str) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        self.string(if name == "error" { "err" } else { name });
        self.json.push(':');
    }

    fn string(&mut self, text: &str) {
        self.json.push_str(&json::to_string(&text.into()));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    /// A number or a Boolean.
    fn raw(&mut self, name: &str, value: impl fmt::Display) {
        self.key(name);
        let _ = write!(self.json, "{value}"); // writing to a String cannot fail
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            MESSAGE => value.clone_into(&mut self.message),
            name => self.text(name, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.raw(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.raw(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.raw(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match value.is_finite() {
            true => self.raw(field.name(), value),
            false => self.text(field.name(), &value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt};

    use super::*;

    /// The lines of the events of `work`, at the time 1.5 ms.
    fn lines(work: impl FnOnce()) -> Vec<String> {
        struct Recorded(Mutex<Vec<String>>);
        impl<S: Subscriber> Layer<S> for &'static Recorded {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                self.0.lock().push(line(1.5, event));
            }
        }
        let recorded: &'static Recorded = Box::leak(Box::new(Recorded(Mutex::default())));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(recorded), work);
        std::mem::take(&mut recorded.0.lock())
    }

    #[test]
    fn a_line_has_upstreams_members_and_the_fields() {
        let lines = lines(|| {
            let audit_id = "a\"\n\u{1b}";
            tracing::debug!(resp = 200, "audit-ID" = audit_id, ok = true, part = 0.5, "HTTP");
            tracing::error!(error = %"no {\"route\"}", took = ?std::time::Duration::from_millis(3), "lost");
            tracing::info!("line {}", "one\ntwo");
        });
        let expected = [
            r#""msg":"HTTP","v":3,"resp":200,"audit-ID":"a\"\n\u001b","ok":true,"part":0.5}"#,
            r#""msg":"lost","err":"no {\"route\"}","took":"3ms"}"#,
            r#""msg":"line one\ntwo","v":0}"#,
        ];
        assert_eq!(lines.len(), expected.len());
        for (line, expected) in lines.iter().zip(expected) {
            let (head, rest) = line.split_at(line.len() - expected.len());
            assert_eq!(rest, expected, "{line}");
            assert!(head.starts_with(r#"{"ts":1.5,"caller":"pintle/log/json.rs:"#), "{line}");
            serde_json::from_str::<serde_json::Value>(line).expect("one JSON object");
        }
    }
}
