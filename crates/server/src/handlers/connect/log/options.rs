//! The options of a pod's log in the query: `PodLogOptions`.

use pintle_meta::field;
use pintle_meta::{GroupKind, Status, time};
use pintle_value::{Path, Value};

use crate::options::integer;
use crate::query::{Query, percent_encode};
use crate::request_info::flag;

/// The part of a log that a client wants.
pub(super) struct LogOptions {
    follow: bool,
    previous: bool,
    timestamps: bool,
    /// In microseconds since 1970.
    since_time: Option<i64>,
    since_seconds: Option<i64>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    names_stream: bool,
    /// Whether the kubelet's certificate is not verified.
    pub(super) insecure: bool,
}

impl LogOptions {
    /// Parses the query; errors have upstream's text.
    pub(super) fn read(query: &Query) -> Result<Self, Status> {
        let is_on = |name| flag(query.get(name));
        let since_seconds = integer(query, "sinceSeconds")?;
        let since_time = query.get("sinceTime").filter(|given| !given.is_empty());
        let since_time = since_time.map(time::parse).transpose();
        Ok(Self {
            follow: is_on("follow"),
            previous: is_on("previous"),
            timestamps: is_on("timestamps"),
            since_time: since_time.map_err(|why| Status::bad_request(why.to_string()))?,
            since_seconds,
            tail_lines: integer(query, "tailLines")?,
            limit_bytes: integer(query, "limitBytes")?,
            names_stream: query.has("stream"),
            insecure: is_on("insecureSkipTLSVerifyBackend"),
        })
    }

    /// Validates the options; errors have upstream's text.
    pub(super) fn check(&self, pod: &str) -> Result<(), Status> {
        let at_least = |name: &str, number: Option<i64>, least: i64, why: &str| {
            let number = number.filter(|number| *number < least)?;
            Some(field::Error::invalid(&Path::new(name), &Value::Int(number), why))
        };
        let not_negative = "must be greater than or equal to 0";
        let mut errors = field::Errors::default();
        errors.extend(at_least("tailLines", self.tail_lines, 0, not_negative));
        errors.extend(at_least("limitBytes", self.limit_bytes, 1, "must be greater than 0"));
        if self.since_seconds.is_some() && self.since_time.is_some() {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(field::Error::forbidden(&Path::new("[]"), why));
        } else {
            let since = at_least("sinceSeconds", self.since_seconds, 1, "must be greater than 0");
            errors.extend(since);
        }
        // The feature gate `PodLogsQuerySplitStreams` is off.
        if self.names_stream {
            errors.push(field::Error::forbidden(&Path::new("stream"), "may not be specified"));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(&GroupKind::new("", "PodLogOptions"), pod, &errors))
    }

    /// The query for the kubelet, with its `?`; absent options are left out.
    pub(super) fn query(&self) -> String {
        let is_on = |on: bool| on.then(|| "true".to_owned());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let pairs = [
            ("follow", is_on(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", is_on(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", self.since_time.map(time::format)),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", is_on(self.timestamps)),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let given = given.map(|(name, value)| format!("{name}={}", percent_encode(&value)));
        let query = given.collect::<Vec<_>>().join("&");
        if query.is_empty() { query } else { format!("?{query}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_passed_on_to_the_kubelet() {
        for (requested, expected) in [
            ("", ""),
            ("container=c&follow=false&insecureSkipTLSVerifyBackend=true", ""),
            (
                "timestamps&tailLines=0&follow=1&previous=true&limitBytes=7",
                "?follow=true&limitBytes=7&previous=true&tailLines=0&timestamps=true",
            ),
            ("sinceTime=2020-01-01T02:00:00%2B02:00", "?sinceTime=2020-01-01T00%3A00%3A00Z"),
        ] {
            assert_eq!(
                LogOptions::read(&Query::parse(requested)).unwrap().query(),
                expected,
                "{requested}"
            );
        }
    }
}
