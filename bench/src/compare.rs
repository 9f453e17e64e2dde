//! Comparison of reports: the median of each figure by label, and whether labels differ by more
//! than their rounds do.

use std::fmt;

use crate::report::Report;

/// The figures of several labels, with the first as the base.
pub struct Comparison {
    labels: Vec<String>,
    rows: Vec<Compared>,
}

/// A figure of all labels.
struct Compared {
    name: String,
    unit: String,
    /// By label; `None` if no report of the label has the figure.
    values: Vec<Option<Spread>>,
}

/// The figures of one label's rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    /// The spread of figures; `None` if there are none.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self { least, median: values[values.len() / 2], most })
    }

    /// Whether the ranges overlap, so that a difference may be noise.
    fn overlaps(self, other: Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

impl Comparison {
    /// Compares reports. Labels and figures have the order in which they first appear.
    pub fn of(reports: &[Report]) -> Self {
        let mut labels: Vec<String> = Vec::new();
        let mut names: Vec<(String, String)> = Vec::new();
        for report in reports {
            if !labels.contains(&report.label) {
                labels.push(report.label.clone());
            }
            for row in &report.rows {
                if !names.iter().any(|(name, _)| *name == row.name) {
                    names.push((row.name.clone(), row.unit.to_string()));
                }
            }
        }
        let spread = |label: &String, name: &str, unit: &str| {
            let reports = reports.iter().filter(|report| report.label == *label);
            let rows = reports.flat_map(|report| &report.rows).filter(|row| row.name == name);
            Spread::of(rows.map(|row| row.value * scale(&row.unit, unit)).collect())
        };
        let compared = |(name, unit): (String, String)| Compared {
            values: labels.iter().map(|label| spread(label, &name, &unit)).collect(),
            name,
            unit,
        };
        let rows = names.into_iter().map(compared).collect();
        Self { labels, rows }
    }
}

/// The factor from one unit to another: processor times are in `us` or `ms`.
fn scale(from: &str, to: &str) -> f64 {
    match (from, to) {
        ("us", "ms") => 1e-3,
        ("ms", "us") => 1e3,
        _ => 1.0,
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:48}", "median (least to most)")?;
        for label in &self.labels {
            write!(f, " {label:>34}")?;
        }
        writeln!(f)?;
        for Compared { name, unit, values } in &self.rows {
            write!(f, "{:48}", format!("{name} ({unit})"))?;
            let base = values.first().copied().flatten();
            for (index, value) in values.iter().enumerate() {
                let text = value.map_or_else(|| "-".to_owned(), |spread| spread.to_string());
                let ratio = match (base, value) {
                    (Some(base), Some(value)) if index > 0 && base.median > 0.0 => {
                        let is_noise = if base.overlaps(*value) { "~" } else { "" };
                        format!(" {is_noise}{:.2}x", value.median / base.median)
                    }
                    _ => String::new(),
                };
                write!(f, " {:>34}", text + &ratio)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "~ the ranges overlap, so the difference may be noise")
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median < 100.0 { 2 } else { 0 };
        let Self { least, median, most } = self;
        write!(f, "{median:.digits$} ({least:.digits$}-{most:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(label: &str, rate: f64, time: (f64, &'static str)) -> Report {
        let mut report = Report { label: label.to_owned(), ..Report::default() };
        report.add("create", rate, "/s");
        report.add("create, processor time", time.0, time.1);
        report
    }

    #[test]
    fn medians_are_compared_with_the_first_label() {
        let reports = [
            report("a", 100.0, (900.0, "us")),
            report("b", 210.0, (0.45, "ms")),
            report("a", 110.0, (1.1, "ms")),
            report("b", 200.0, (2.0, "ms")),
            report("a", 90.0, (1.0, "ms")),
        ];
        let lines: Vec<String> =
            Comparison::of(&reports).to_string().lines().map(squeezed).collect();
        assert_eq!(lines[1], "create (/s) 100 (90-110) 210 (200-210) 2.10x");
        assert_eq!(lines[2], "create, processor time (us) 1000 (900-1100) 2000 (450-2000) ~2.00x");
    }

    fn squeezed(line: &str) -> String {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
