//! Rewrites a backend's links and redirects to itself so that they stay below the proxy (upstream:
//! `Transport.rewriteURL`).

use pintle_meta::quote::quote;

use crate::header_text::lossy;
use crate::query::{encode_path, percent_decode};

/// The mapping from a backend's paths to the client's.
pub(crate) struct Rewriting {
    prefix: String,
    /// The backend's host, with its port if one was named.
    backend: String,
    /// The host of the client's request.
    host: String,
}

/// An invalid URL.
#[derive(Debug, thiserror::Error)]
#[error("invalid URL escape {}", quote(.0))]
pub(crate) struct InvalidUrl(String);

impl InvalidUrl {
    /// The error of the first invalid escape.
    fn in_path(path: &str) -> Self {
        let escapes = path.match_indices('%').map(|(start, _)| &path.as_bytes()[start..]);
        let is_none =
            |rest: &&[u8]| rest.len() < 3 || !rest[1..3].iter().all(u8::is_ascii_hexdigit);
        let escape = escapes.map(|rest| &rest[..rest.len().min(3)]).find(is_none);
        Self(lossy(escape.unwrap_or_default()).into_owned())
    }
}

impl Rewriting {
    /// The mapping of a request for `path`, which is `inner` at the backend.
    pub(crate) fn new(path: &str, inner: &str, backend: String, host: String) -> Self {
        let slash = if path.ends_with('/') && !inner.ends_with('/') { "/" } else { "" };
        let prefix = path.strip_suffix(&format!("{inner}{slash}")).unwrap_or(path);
        Self { prefix: prefix.to_owned(), backend, host }
    }

    /// Returns the client's path for the header that reports it to the backend. `encoded` is the
    /// backend's path, percent-encoded.
    pub(crate) fn forwarded(&self, encoded: &str) -> String {
        join(&self.prefix, encoded)
    }

    /// The new link, if it must be rewritten.
    pub(crate) fn rewritten(&self, link: &str) -> Result<Option<String>, InvalidUrl> {
        let link = Link::read(link);
        let path = percent_decode(link.path).ok_or_else(|| InvalidUrl::in_path(link.path))?;
        let is_elsewhere = link.host.is_some_and(|host| host != self.backend && host != self.host);
        if is_elsewhere || !path.starts_with('/') {
            return Ok(None);
        }
        // A link to the host that the client named keeps its origin; a link to the backend loses
        // it.
        let origin = if link.host == Some(&self.host) { link.origin } else { "" };
        let path = if path.starts_with(&self.prefix) {
            path.into_owned()
        } else {
            join(&self.prefix, &path)
        };
        Ok(Some(format!("{origin}{}{}", encode_path(&path), link.rest)))
    }
}

/// A URL in parts (RFC 3986, 3).
struct Link<'a> {
    /// Scheme, slashes and host.
    origin: &'a str,
    host: Option<&'a str>,
    path: &'a str,
    /// Query and fragment, with their delimiters.
    rest: &'a str,
}

impl<'a> Link<'a> {
    fn read(link: &'a str) -> Self {
        let (before, rest) = link.split_at(link.find(['?', '#']).unwrap_or(link.len()));
        let rest = rest.strip_suffix('#').unwrap_or(rest);
        let is_scheme = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let scheme = before.find(':').filter(|end| is_scheme(&before[..*end]));
        let scheme_end = scheme.map_or(0, |end| end + 1);
        let hierarchy = &before[scheme_end..];
        let authority = hierarchy.strip_prefix("//");
        let Some(authority) = authority.filter(|authority| !authority.starts_with('/')) else {
            return Self { origin: &before[..scheme_end], host: None, path: hierarchy, rest };
        };
        let path_start =
            before.len() - authority.len() + authority.find('/').unwrap_or(authority.len());
        let (origin, path) = before.split_at(path_start);
        let named = &authority[..authority.len() - path.len()];
        let host = named.rsplit_once('@').map_or(named, |(_, host)| host);
        Self { origin, host: Some(host).filter(|host| !host.is_empty()), path, rest }
    }
}

/// Joins two paths and resolves `.` and `..`; a trailing slash stays (upstream:
/// `JoinPreservingTrailingSlash`).
pub(crate) fn join(prefix: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in prefix.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "/api/v1/namespaces/n/pods/p/proxy";

    fn rewriting(inner: &str) -> Rewriting {
        let path = format!("{PROXY}{inner}");
        Rewriting::new(&path, inner, "10.0.0.1:80".to_owned(), "here:6443".to_owned())
    }

    #[test]
    fn links_to_the_backend_lead_below_the_proxy() {
        for (link, expected) in [
            ("/c", Some("$/c")),
            ("/c/?x=y#z", Some("$/c/?x=y#z")),
            ("/a%20b?c=%zz#e", Some("$/a%20b?c=%zz#e")),
            ("/a%2Fb", Some("$/a/b")),
            ("/a/../b", Some("$/b")),
            ("/a//b/", Some("$/a/b/")),
            ("///x", Some("$/x")),
            ("/x#", Some("$/x")),
            ("/x?", Some("$/x?")),
            ("$/already", Some("$/already")),
            ("http://10.0.0.1:80/c", Some("$/c")),
            ("HTTPS://10.0.0.1:80/c", Some("$/c")),
            ("//10.0.0.1:80/c", Some("$/c")),
            ("https://here:6443/c", Some("https://here:6443$/c")),
            ("//here:6443/c", Some("//here:6443$/c")),
            ("http://10.0.0.1/c", None),
            ("http://10.0.0.1:80", None),
            ("http://elsewhere/c", None),
            ("c", None),
            ("../c", None),
            ("?q=/1", None),
            ("#f", None),
            ("", None),
            ("mailto:a@b", None),
            ("javascript:alert(1)/2", None),
        ] {
            let (link, expected) =
                (link.replace('$', PROXY), expected.map(|expected| expected.replace('$', PROXY)));
            assert_eq!(rewriting("/a/b").rewritten(&link).unwrap(), expected, "{link}");
        }
        for (link, escape) in [("/%zz", "%zz"), ("/%20%2", "%2")] {
            let why = rewriting("").rewritten(link).unwrap_err().to_string();
            assert_eq!(why, format!("invalid URL escape {escape:?}"));
        }
    }

    #[test]
    fn the_backend_receives_the_clients_path() {
        for (inner, encoded, expected) in
            [("/a/b", "/a/b", "$/a/b"), ("/a/", "/a/", "$/a/"), ("", "/", "$/"), ("/", "/", "$/")]
        {
            let expected = expected.replace('$', PROXY);
            assert_eq!(rewriting(inner).forwarded(encoded), expected, "{inner}");
        }
    }

    #[test]
    fn paths_are_joined() {
        for (prefix, path, expected) in [
            ("", "/a/b", "/a/b"),
            ("", "/a//b/../c", "/a/c"),
            ("", "/../..", "/"),
            ("", "/a/", "/a/"),
            ("", "/", "/"),
            ("/p", "/a/./b", "/p/a/b"),
        ] {
            assert_eq!(join(prefix, path), expected, "{prefix} {path}");
        }
    }
}
