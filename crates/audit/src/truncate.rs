//! Truncation of events that are too large.

use std::borrow::Cow;

use crate::{Event, Level};

/// The annotation of a truncated event, by upstream's name.
pub const TRUNCATED: &str = "audit.k8s.io/truncated";

/// Returns an event that fits into `bytes_max` bytes of JSON and a line end, without its objects if
/// necessary; `None` if it is still too large.
pub fn truncated(event: &Event, bytes_max: usize) -> Option<Cow<'_, Event>> {
    let fits = |event: &Event| event.to_json().len() < bytes_max;
    if fits(event) {
        return Some(Cow::Borrowed(event));
    }
    if event.level < Level::Request {
        return None;
    }
    let mut rest = Event { request_object: None, response_object: None, ..event.clone() };
    rest.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
    fits(&rest).then_some(Cow::Owned(rest))
}
