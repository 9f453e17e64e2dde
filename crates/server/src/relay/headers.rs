//! Headers of relayed requests and responses.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
};

use crate::header_text;

/// The hop-by-hop headers.
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

/// Whether the client requests an upgrade.
pub(crate) fn requests_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().map(header_text::text);
    values.into_iter().any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Removes hop-by-hop headers, and those that `Connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
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

/// Removes the headers that describe the length of a body, for a message with another body or none.
pub(crate) fn remove_body_length(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(TRANSFER_ENCODING);
    headers.remove(TRAILER);
}

/// Appends the client's address to `X-Forwarded-For`.
pub(crate) fn forward_for(from: IpAddr, headers: &mut HeaderMap) {
    let prior = header_text::list(headers, &FORWARDED_FOR).replace(',', ", ");
    let prior = prior.replace(",  ", ", ");
    let all = if prior.is_empty() { from.to_string() } else { format!("{prior}, {from}") };
    if let Ok(value) = HeaderValue::from_str(&all) {
        headers.insert(FORWARDED_FOR, value);
    }
}
