//! Metric families, and the writing of samples in Prometheus' text format 0.0.4.

use std::fmt::{Display, Write};

use pintle_measure::Observed;

/// A metric family: name, help, stability, labels, type.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) stability: Stability,
    /// The label names, sorted.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// A family and the function that reads its value.
pub(crate) type Number<S> = (&'static Family, fn(&S) -> u64);

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    /// A histogram with these bucket bounds.
    Histogram(Unit, &'static [u64]),
}

/// The unit of a histogram's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds, counted in nanoseconds.
    Seconds,
    /// Whole seconds, bytes or items.
    Whole,
}

/// Upstream's stability level. Pintle's own metrics are [`Self::Alpha`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stability {
    Stable,
    Beta,
    Alpha,
    /// Metrics of Prometheus' client library, such as those of the process, state no stability.
    Unstated,
}

impl Stability {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Stable => "[STABLE] ",
            Self::Beta => "[BETA] ",
            Self::Alpha => "[ALPHA] ",
            Self::Unstated => "",
        }
    }

    /// The label `stability_level` of `registered_metrics_total`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stable => "STABLE",
            Self::Beta => "BETA",
            Self::Alpha | Self::Unstated => "ALPHA",
        }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(..) => "histogram",
        }
    }
}

/// The page of metrics while it is written.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    /// True to show families that upstream hides as deprecated.
    shows_hidden: bool,
}

/// The samples of a family while they are written.
pub(crate) struct Samples<'a> {
    family: &'static Family,
    is_headed: bool,
    page: &'a mut String,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(shows_hidden: bool) -> Self {
        Self { text: String::new(), shows_hidden }
    }

    /// True to show families that upstream hides as deprecated.
    pub(crate) const fn shows_hidden(&self) -> bool {
        self.shows_hidden
    }

    /// Begins a family. The heading is written with the first sample.
    pub(crate) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        Samples { family, is_headed: false, page: &mut self.text }
    }

    /// Writes a family of one value without labels.
    pub(crate) fn single(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).value(&[], value);
    }

    /// Returns the text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Samples<'_> {
    /// Writes a value with these labels.
    pub(crate) fn value(&mut self, labels: &[&str], value: impl Display) {
        self.head();
        self.sample("", labels, None, value);
    }

    /// Writes a distribution with these labels.
    pub(crate) fn distribution(&mut self, labels: &[&str], observed: &Observed) {
        let Kind::Histogram(unit, _) = self.family.kind else {
            debug_assert!(false, "{} is no histogram", self.family.name);
            return;
        };
        self.head();
        let mut below = 0;
        for (bound, count) in observed.bounds.iter().zip(&observed.buckets) {
            below += count;
            self.sample("_bucket", labels, Some(&unit.bound(*bound)), below);
        }
        let count = observed.count();
        self.sample("_bucket", labels, Some("+Inf"), count);
        self.sample("_sum", labels, None, unit.sum(observed.sum));
        self.sample("_count", labels, None, count);
    }

    fn head(&mut self) {
        if std::mem::replace(&mut self.is_headed, true) {
            return;
        }
        let Family { name, kind, stability, help, .. } = self.family;
        let (kind, prefix) = (kind.name(), stability.prefix());
        write!(self.page, "# HELP {name} {prefix}{help}\n# TYPE {name} {kind}\n")
            .expect("writing to a String cannot fail");
    }

    fn sample(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "labels of {}", self.family.name);
        let page = &mut *self.page;
        page.push_str(self.family.name);
        page.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let labels = self.family.labels.iter().copied().zip(labels.iter().copied());
        let mut before = '{';
        for (name, value) in labels.chain(bound) {
            page.push(before);
            label(page, name, value);
            before = ',';
        }
        if before == ',' {
            page.push('}');
        }
        writeln!(page, " {value}").expect("writing to a String cannot fail");
    }
}

fn label(page: &mut String, name: &str, value: &str) {
    page.push_str(name);
    page.push_str("=\"");
    for c in value.chars() {
        match c {
            '"' => page.push_str("\\\""),
            '\\' => page.push_str("\\\\"),
            '\n' => page.push_str("\\n"),
            c => page.push(c),
        }
    }
    page.push('"');
}

impl Unit {
    #[expect(clippy::cast_precision_loss, reason = "bounds are round numbers")]
    pub(crate) fn bound(self, bound: u64) -> String {
        number(match self {
            Self::Seconds => bound as f64 / 1e9,
            Self::Whole => bound as f64,
        })
    }

    fn sum(self, sum: u64) -> String {
        match self {
            Self::Seconds => format!("{}.{:09}", sum / 1_000_000_000, sum % 1_000_000_000),
            Self::Whole => sum.to_string(),
        }
    }
}

/// Formats a number as Go's `%g`, which identifies a bucket's series: `0.005`, `1e-05`, `3.05e+06`.
fn number(x: f64) -> String {
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..=5 => x.to_string(),
        exponent if exponent < 0 => format!("{digits}e-{:02}", -exponent),
        exponent => format!("{digits}e+{exponent:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_measure::{Distribution, nanoseconds};
    use std::time::Duration;

    #[test]
    fn samples_have_one_heading_and_escaped_labels() {
        static FAMILY: Family = Family {
            name: "x_total",
            kind: Kind::Counter,
            stability: Stability::Beta,
            labels: &["a", "b"],
            help: "Some.",
        };
        let mut page = Page::default();
        let mut samples = page.family(&FAMILY);
        samples.value(&["x\"\\\n", ""], 1);
        samples.value(&["y", "z"], 2);
        assert_eq!(
            page.into_text(),
            "# HELP x_total [BETA] Some.\n# TYPE x_total counter\n\
             x_total{a=\"x\\\"\\\\\\n\",b=\"\"} 1\nx_total{a=\"y\",b=\"z\"} 2\n"
        );
    }

    #[test]
    fn buckets_are_cumulative() {
        static BOUNDS: [u64; 2] = nanoseconds([0.005, 1.0]);
        static FAMILY: Family = Family {
            name: "x_seconds",
            kind: Kind::Histogram(Unit::Seconds, &BOUNDS),
            stability: Stability::Stable,
            labels: &[],
            help: "Some.",
        };
        let distribution = Distribution::new(&BOUNDS);
        [1, 30, 2000].iter().for_each(|ms| distribution.took(Duration::from_millis(*ms)));
        let mut page = Page::default();
        page.family(&FAMILY).distribution(&[], &distribution.observed());
        assert_eq!(
            page.into_text(),
            "# HELP x_seconds [STABLE] Some.\n# TYPE x_seconds histogram\n\
             x_seconds_bucket{le=\"0.005\"} 1\nx_seconds_bucket{le=\"1\"} 2\n\
             x_seconds_bucket{le=\"+Inf\"} 3\nx_seconds_sum 2.031000000\nx_seconds_count 3\n"
        );
    }

    #[test]
    fn bounds_are_written_as_go_writes_them() {
        let rows = [
            (0.005, "0.005"),
            (1e-5, "1e-05"),
            (5e-7, "5e-07"),
            (0.0001, "0.0001"),
            (1.0, "1"),
            (131_072.0, "131072"),
            (1e6, "1e+06"),
            (3.05e6, "3.05e+06"),
            (124_416_000.0, "1.24416e+08"),
        ];
        for (x, text) in rows {
            assert_eq!(number(x), text);
        }
    }
}
