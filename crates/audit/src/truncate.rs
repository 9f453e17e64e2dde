//! What is left out of events that are too large.

use std::borrow::Cow;

use crate::{Event, Level};

/// The annotation of an event whose objects were left out, as upstream names it.
pub const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The event within so many bytes of JSON and an end of line, without its objects where they make it too large; `None` where
/// it is too large without them, too.
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
