//! Debugging pages: the priority levels, their queues and requests as tables (APF-08; upstream:
//! `apf_controller_debug.go`).

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pintle_auth::Attributes;
use pintle_fairness::RequestState;
use pintle_meta::{duration, time};

use super::level::Known;
use super::{Entry, Fairness};

/// Go's zero time.
const NEVER: &str = "0001-01-01T00:00:00Z";

type Row = Vec<String>;

impl Fairness {
    /// The debugging page with this name, if there is one.
    pub(crate) fn debugging_page(&self, name: &str, has_details: bool) -> Option<String> {
        let rows = match name {
            "dump_priority_levels" => self.dump_levels(),
            "dump_queues" => self.dump_queues(),
            "dump_requests" => self.dump_requests(has_details),
            _ => return None,
        };
        Some(table(&rows))
    }

    fn dump(&self, headers: &[&str], mut rows: impl FnMut(&Entry, &mut Vec<Row>)) -> Vec<Row> {
        let mut all = vec![headers.iter().map(|header| (*header).to_owned()).collect()];
        self.state.read().levels.values().for_each(|entry| rows(entry, &mut all));
        all
    }

    fn dump_levels(&self) -> Vec<Row> {
        const HEADERS: [&str; 10] = [
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ];
        self.dump(&HEADERS, |entry, rows| {
            rows.push(entry.level.look(|set| {
                let counts = set.counts();
                vec![
                    entry.spec.name.clone(),
                    set.queues().filter(|queue| queue.waiting > 0).count().to_string(),
                    set.is_idle().to_string(),
                    entry.is_quiescing.to_string(),
                    counts.waiting.to_string(),
                    counts.executing.to_string(),
                    counts.dispatched.to_string(),
                    counts.rejected.to_string(),
                    0.to_string(), // upstream counts timeouts as cancelled, too
                    counts.cancelled.to_string(),
                ]
            }));
        })
    }

    fn dump_queues(&self) -> Vec<Row> {
        const HEADERS: [&str; 9] = [
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ];
        self.dump(&HEADERS, |entry, rows| {
            entry.level.look(|set| {
                rows.extend(set.queues().enumerate().map(|(index, queue)| {
                    vec![
                        entry.spec.name.clone(),
                        index.to_string(),
                        queue.waiting.to_string(),
                        queue.executing.to_string(),
                        queue.seats_in_use.to_string(),
                        queue.next_dispatch.to_string(),
                        queue.initial_seats_waiting.to_string(),
                        queue.seats_waiting.to_string(),
                        queue.work.to_string(),
                    ]
                }));
            });
        })
    }

    fn dump_requests(&self, has_details: bool) -> Vec<Row> {
        const HEADERS: [&str; 18] = [
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            "FlowDistingsher", // upstream's spelling
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
            "StartTime",
            "UserName",
            "Verb",
            "APIPath",
            "Namespace",
            "Name",
            "APIVersion",
            "Resource",
            "SubResource",
        ];
        const WITHOUT_DETAILS: usize = 10;
        let headers = if has_details { &HEADERS[..] } else { &HEADERS[..WITHOUT_DETAILS] };
        let began = SystemTime::now() - self.now();
        self.dump(headers, |entry, rows| {
            entry.level.look(|set| {
                let requests = set.requests();
                rows.extend(requests.iter().filter(|request| !request.is_finished).map(
                    |request| {
                        let mut row = request_row(&entry.spec.name, request, began);
                        if has_details {
                            row.extend(details(request.known_by));
                        }
                        row
                    },
                ));
            });
        })
    }
}

fn request_row(level: &str, request: &RequestState<'_, Known>, began: SystemTime) -> Row {
    let Known { class, user, info, .. } = request.known_by;
    let asked = Attributes { user, verb: info.verb.as_str(), subject: info.subject() };
    let flow = if class.has_queues { class.schema.distinguisher_of(&asked) } else { "" };
    let index = |index: Option<usize>| index.map_or_else(|| "-1".to_owned(), |i| i.to_string());
    let at = |since: Duration| instant(began + since);
    let estimate = &request.estimate;
    let latency = i64::try_from(estimate.additional_latency.as_nanos()).unwrap_or(i64::MAX);
    vec![
        level.to_owned(),
        class.schema.name.clone(),
        index(request.queue),
        index(request.position),
        in_one_line(flow),
        at(request.arrived),
        estimate.initial_seats.to_string(),
        estimate.final_seats.to_string(),
        duration::format(latency),
        request.executing_since.map_or_else(|| NEVER.to_owned(), at),
    ]
}

fn details(known: &Known) -> Row {
    let none = crate::request_info::ResourceInfo::default();
    let named = known.info.resource.as_ref().unwrap_or(&none);
    let version = match named.group.as_str() {
        "" => named.version.clone(),
        group => format!("{group}/{}", named.version),
    };
    let texts = [
        known.user.name.as_str(),
        known.info.verb.as_str(),
        &known.info.path,
        &named.namespace,
        &named.name,
        &version,
        &named.resource,
        &named.subresource,
    ];
    texts.map(in_one_line).to_vec()
}

/// Replaces control characters of a client's text by spaces, so that the text forges no row.
fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Formats a time as Go's `RFC3339Nano`: without zeros at the end.
fn instant(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since.as_secs()).unwrap_or_default().saturating_mul(1_000_000);
    let whole = time::format(micros);
    let (whole, fraction) = (whole.trim_end_matches('Z'), format!("{:09}", since.subsec_nanos()));
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}Z"),
        fraction => format!("{whole}.{fraction}Z"),
    }
}

/// Formats rows as text: cells end with commas and are padded with spaces, as Go's `tabwriter` does
/// with a minimum width of 8 and a padding of 1.
fn table(rows: &[Row]) -> String {
    const WIDTH_MIN: usize = 8;
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count() + 2);
        widths.max().unwrap_or_default().max(WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let (last, cells) = row.split_last().map_or(("", &row[..0]), |(l, c)| (l.as_str(), c));
        for (cell, width) in cells.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(text, "{:width$}", format!("{cell},"));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_filled_up() {
        let rows = [["Name", "LongerHeader", "End"], ["x", "1", "2"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "Name,   LongerHeader, End\nx,      1,            2\n");
    }

    #[test]
    fn times_have_no_zeros_at_the_end() {
        let at = |nanos| instant(UNIX_EPOCH + Duration::new(1, nanos));
        assert_eq!(at(0), "1970-01-01T00:00:01Z");
        assert_eq!(at(120_000_000), "1970-01-01T00:00:01.12Z");
        assert_eq!(at(1), "1970-01-01T00:00:01.000000001Z");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(in_one_line("a\n\tb"), "a  b");
    }
}
