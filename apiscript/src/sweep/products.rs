//! Objects with two large parts, for work that grows with the product of their sizes: the rows of a
//! file. The sweep finds most such work by itself, but it fills only the lists of one object, and
//! with valid items.

use anyhow::Result;
use serde::Deserialize;

use super::STORED_SHARE;
use super::axes::raw;
use super::meter::get;
use crate::http::Request;
use crate::request::media_type;

const ROWS: &str = include_str!("../../corpus/products.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    path: String,
    create: String,
    #[serde(default)]
    part: String,
    #[serde(default)]
    put: Vec<String>,
    #[serde(default)]
    table: bool,
    many: Vec<String>,
}

/// The requests of each row, whose objects are about `bytes` long.
pub(super) fn all(namespace: &str, bytes: usize) -> Result<Vec<(String, Vec<Request>)>> {
    let rows: Vec<Row> = serde_saphyr::from_str(&ROWS.replace("$ns", namespace))?;
    let named = rows.into_iter().enumerate().map(|(i, row)| {
        let requests = row.requests(&format!("product{i}"), bytes);
        (format!("product: {}", row.name), requests)
    });
    Ok(named.collect())
}

impl Row {
    fn requests(&self, name: &str, bytes: usize) -> Vec<Request> {
        const JSON: &str = "application/json";
        let is_stored = self.table || !self.put.is_empty();
        let bytes = if is_stored { bytes / STORED_SHARE } else { bytes };
        let fill = |text: &str| self.filled(text, bytes).replace("$name", name);
        if !is_stored {
            let path = format!("{}?dryRun=All", self.path);
            return vec![raw("POST", &path, JSON, fill(&self.create))];
        }
        let path = format!("{}/{name}", self.path);
        let part = format!("{path}{}", self.part);
        let mut requests = vec![raw("POST", &self.path, JSON, fill(&self.create))];
        requests.extend(self.put.iter().map(|text| raw("PUT", &part, JSON, fill(text))));
        let mut table = get(&path);
        table.headers = vec![("Accept".to_owned(), media_type("table").to_owned())];
        requests.push(table);
        requests.push(Request { method: "DELETE".to_owned(), ..get(&path) });
        requests
    }

    /// Replaces the lists and texts; each takes its share of the bytes.
    fn filled(&self, text: &str, bytes: usize) -> String {
        let share = bytes / self.many.len().max(1);
        let mut text = text.to_owned();
        for (i, unit) in self.many.iter().enumerate() {
            for (form, separator) in [("list", ","), ("text", "")] {
                let place = format!("<{form} {i}>");
                if text.contains(&place) {
                    text = text.replace(&place, &repeated(unit, separator, share));
                }
            }
        }
        text
    }
}

/// A text of about `bytes` bytes.
fn repeated(unit: &str, separator: &str, bytes: usize) -> String {
    let one = |i: usize| {
        let [_, a, b, c] = u32::try_from(i).unwrap_or_default().to_be_bytes();
        unit.replace('#', &i.to_string()).replace('@', &format!("{a}.{b}.{c}"))
    };
    let count = bytes / (one(100_000).len() + separator.len());
    (0..count).map(one).collect::<Vec<_>>().join(separator)
}
