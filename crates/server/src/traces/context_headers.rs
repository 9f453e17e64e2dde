//! The headers `traceparent` and `tracestate`.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use pintle_trace::SpanContext;

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// Reads the context of a request.
pub(crate) fn read(headers: &HeaderMap) -> Option<SpanContext> {
    let parent = headers.get(PARENT)?;
    let state = headers.get(STATE).map_or(&b""[..], HeaderValue::as_bytes);
    SpanContext::parse(parent.as_bytes(), state)
}

/// Replaces the context in the headers of a call; removes it if `context` is `None`.
pub(crate) fn write(context: Option<&SpanContext>, headers: &mut HeaderMap) {
    headers.remove(PARENT);
    headers.remove(STATE);
    let Some(context) = context else { return };
    if let Ok(parent) = HeaderValue::try_from(context.to_string()) {
        headers.insert(PARENT, parent);
    }
    if let (false, Ok(state)) = (context.state.is_empty(), HeaderValue::from_str(&context.state)) {
        headers.insert(STATE, state);
    }
}
