//! Headers that go on to a backend, and back to a client.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
};

use crate::header_text;

/// What is about one connection and not about a request.
const OF_THE_CONNECTION: &[&str] = &[
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whether a client asks for another protocol.
pub(crate) fn ask_for_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().map(header_text::text);
    values.into_iter().any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Drops what is about the connection on which the headers came, and what they themselves call so.
pub(crate) fn leave_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| {
            let text = header_text::text(value).into_owned();
            text.split(',').filter_map(|name| name.trim().parse().ok()).collect::<Vec<_>>()
        })
        .collect();
    named.iter().for_each(|name| drop(headers.remove(name)));
    OF_THE_CONNECTION.iter().for_each(|name| drop(headers.remove(*name)));
}

/// Drops what says how long a body is that is not sent.
pub(crate) fn leave_body(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(TRANSFER_ENCODING);
    headers.remove(TRAILER);
}

/// Says from where the request came, behind what it says itself.
pub(crate) fn forward_for(from: IpAddr, headers: &mut HeaderMap) {
    let prior = header_text::list(headers, &FORWARDED_FOR).replace(',', ", ");
    let prior = prior.replace(",  ", ", ");
    let all = if prior.is_empty() { from.to_string() } else { format!("{prior}, {from}") };
    if let Ok(value) = HeaderValue::from_str(&all) {
        headers.insert(FORWARDED_FOR, value);
    }
}
