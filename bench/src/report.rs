//! The figures, as a table and as JSON, with the budgets.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::load::Figures;

/// The budgets, by the row's name.
const BUDGETS: [(&str, &str); 8] = [
    ("start to ready", "< 50 ms"),
    ("idle memory", "< 20 MB"),
    ("memory beyond the text of each", "< 100 KB"),
    ("a new definition served, slowest", "< 50 ms"),
    ("memory per object", "<= 1.2 x its JSON"),
    ("create 1 KB ConfigMap, 64 clients", ">= 15000/s durable"),
    ("get 1 KB ConfigMap, 64 clients", ">= 50000/s"),
    ("list 10000 pods, identity, 1 client", ">= 800 MB/s"),
];

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The measurement.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// The unit.
    pub unit: Cow<'static, str>,
    /// Latencies in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// The number of refused requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: usize,
    /// The budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cow<'static, str>>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: u32,
    /// The 99th percentile.
    pub p99: u32,
    /// The maximum.
    pub max: u32,
}

/// All figures of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The label that the user gave the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The figures, in order.
    pub rows: Vec<Row>,
    /// Measurements that were not possible, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds a figure.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.push(name.into(), value, unit, None, 0);
    }

    /// Adds a rate with its latencies.
    pub fn add_rate(&mut self, name: impl Into<String>, figures: &Figures) {
        self.push(name.into(), figures.rate(), "/s", Some(figures.into()), figures.refused);
    }

    /// Adds a rate of bytes with the latencies of whole responses.
    pub fn add_bytes(&mut self, name: impl Into<String>, rate_mb: f64, figures: &Figures) {
        self.push(name.into(), rate_mb, "MB/s", Some(figures.into()), figures.refused);
    }

    /// Notes why a measurement was not possible.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn push(
        &mut self,
        name: String,
        value: f64,
        unit: &'static str,
        latency_us: Option<Latency>,
        refused: usize,
    ) {
        let budget =
            BUDGETS.iter().find(|(about, _)| *about == name).map(|(_, budget)| (*budget).into());
        self.rows.push(Row { name, value, unit: unit.into(), latency_us, refused, budget });
    }
}

impl From<&Figures> for Latency {
    fn from(figures: &Figures) -> Self {
        Self {
            p50: figures.percentile_us(0.5),
            p99: figures.percentile_us(0.99),
            max: figures.max_us(),
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            writeln!(f, "{}", self.label)?;
        }
        if self.rows.is_empty() && self.notes.is_empty() {
            return Ok(());
        }
        let title = ["what", "figure", "p50 ms", "p99 ms", "max ms", "budget"];
        writeln!(
            f,
            "{:42} {:>14} {:>9} {:>9} {:>9}  {}",
            title[0], title[1], title[2], title[3], title[4], title[5]
        )?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        for note in &self.notes {
            writeln!(f, "not measured: {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.value {
            small if small < 10.0 => 2,
            middle if middle < 1_000.0 => 1,
            _ => 0,
        };
        let figure = format!("{:.digits$} {}", self.value, self.unit);
        let ms = |us: Option<u32>| {
            us.map_or_else(String::new, |us| format!("{:.2}", f64::from(us) / 1e3))
        };
        let (p50, p99, max) = (
            ms(self.latency_us.map(|l| l.p50)),
            ms(self.latency_us.map(|l| l.p99)),
            ms(self.latency_us.map(|l| l.max)),
        );
        let budget = self.budget.as_deref().unwrap_or_default();
        write!(f, "{:42} {figure:>14} {p50:>9} {p99:>9} {max:>9}  {budget}", self.name)?;
        if self.refused > 0 {
            write!(f, " ({} refused)", self.refused)?;
        }
        Ok(())
    }
}
