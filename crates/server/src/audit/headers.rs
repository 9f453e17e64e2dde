//! What a request's head says that is recorded.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::request::Parts;
use pintle_audit::Request;

use crate::header_text::{lossy, text};

/// The longest text of a user agent that is recorded whole, in bytes (upstream: maxUserAgentLength).
const USER_AGENT_BYTES_MAX: usize = 1024;
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// A request when it comes.
pub(crate) struct Received<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) audit_id: &'a HeaderValue,
    /// The other end of the connection.
    pub(crate) from: IpAddr,
    pub(crate) at_unix_micros: i64,
}

impl Received<'_> {
    /// What events say of it.
    pub(super) fn request(&self) -> Request {
        let uri = &self.head.uri;
        Request {
            audit_id: text(self.audit_id).into_owned(),
            uri: uri.path_and_query().map_or("", |path| path.as_str()).to_owned(),
            verb: "".into(),
            user: None,
            source_ips: source_ips(&self.head.headers, self.from),
            user_agent: user_agent(&self.head.headers),
            received_unix_micros: self.at_unix_micros,
        }
    }
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    match agent.get(..USER_AGENT_BYTES_MAX) {
        Some(start) if agent.len() > USER_AGENT_BYTES_MAX => {
            format!("{}...TRUNCATED", lossy(start))
        }
        _ => lossy(agent).into_owned(),
    }
}

/// The addresses that a request came through, as far as it says so, and from where it came here.
fn source_ips(headers: &HeaderMap, from: IpAddr) -> Vec<String> {
    let first = |name| headers.get(name).map(text).unwrap_or_default();
    let forwarded = first(FORWARDED_FOR);
    let mut ips: Vec<IpAddr> =
        forwarded.split(',').filter_map(|part| address(part.trim())).collect();
    ips.extend(address(&first(REAL_IP)).filter(|ip| !ips.contains(ip)));
    let from = from.to_canonical();
    if ips.last() != Some(&from) {
        ips.push(from);
    }
    ips.iter().map(ToString::to_string).collect()
}

/// An address as Go's old reader has it: the numbers of IPv4 may begin with zeros.
fn address(text: &str) -> Option<IpAddr> {
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let parsed = match text.contains(':') {
        true => text.parse(),
        false => text.split('.').map(plain).collect::<Vec<_>>().join(".").parse(),
    };
    parsed.ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        said.iter().map(pair).collect()
    }

    #[test]
    fn upstreams_source_ips() {
        for (said, wanted) in [
            (&[][..], "172.16.0.1"),
            (&[("x-forwarded-for", "1.1.1.1, 8.8.8.8")], "1.1.1.1 8.8.8.8 172.16.0.1"),
            (&[("x-forwarded-for", "x, ::ffff:1.1.1.1")], "1.1.1.1 172.16.0.1"),
            (&[("x-forwarded-for", "010.000.00.1,1.1.1,::1%x")], "10.0.0.1 172.16.0.1"),
            (&[("x-real-ip", "10.0.0.1")], "10.0.0.1 172.16.0.1"),
            (&[("x-real-ip", "10.0.0.1, 1.1.1.1")], "172.16.0.1"),
            (
                &[("x-forwarded-for", "1.1.1.1,10.0.0.1"), ("x-real-ip", "1.1.1.1")],
                "1.1.1.1 10.0.0.1 172.16.0.1",
            ),
            (&[("x-forwarded-for", "2001:db8::1,172.16.0.1")], "2001:db8::1 172.16.0.1"),
        ] {
            let ips = source_ips(&headers(said), "172.16.0.1".parse().unwrap());
            assert_eq!(ips.join(" "), wanted, "{said:?}");
        }
    }

    #[test]
    fn long_user_agents_are_cut() {
        let agent = |length: usize| user_agent(&headers(&[("user-agent", &"a".repeat(length))]));
        assert_eq!(agent(1024), "a".repeat(1024));
        assert_eq!(agent(1025), format!("{}...TRUNCATED", "a".repeat(1024)));
        assert_eq!(user_agent(&HeaderMap::new()), "");
    }
}
