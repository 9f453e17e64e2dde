//! CORS: the origins whose web pages may use the API (`--cors-allowed-origins`, upstream's
//! `WithCORS`).
//!
//! Must not know the user: a browser's preflight request (OPTIONS) has no credentials.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, HeaderName, HeaderValue,
    ORIGIN,
};
use regex::RegexSet;

use crate::error::Error;
use crate::header_text;

/// The headers for pages of an allowed origin.
const GRANTS: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
         If-Modified-Since",
    ),
    (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
    (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
];

/// The allowed origins, as regular expressions.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    /// `None` if no origin is allowed.
    allowed: Option<RegexSet>,
}

impl Cors {
    /// Parses the flag's expressions. Each must be anchored at the start and the end of the host;
    /// otherwise it would allow hosts that only contain the intended one.
    pub fn parse<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let expressions: Vec<&str> = expressions.into_iter().collect();
        let refuse =
            |reason: &str| Error::Flag { flag: "cors-allowed-origins", reason: reason.to_owned() };
        for expression in &expressions {
            let has_one_of = |marks: [&str; 2]| marks.iter().any(|mark| expression.contains(mark));
            if expression.is_empty() {
                return Err(refuse("empty value"));
            }
            if !has_one_of(["^", "//"]) || !has_one_of(["$", ":"]) {
                return Err(refuse(
                    "regular expression does not pin to start/end of host in the origin header: write it \
                     like '//example\\.com(:|$)'",
                ));
            }
        }
        if expressions.is_empty() {
            return Ok(Self::default());
        }
        let allowed = RegexSet::new(&expressions).map_err(|error| refuse(&error.to_string()))?;
        Ok(Self { allowed: Some(allowed) })
    }

    /// Whether the request's origin is allowed.
    pub(crate) fn allows(&self, headers: &HeaderMap) -> bool {
        self.origin(headers).is_some()
    }

    /// The origin of a request, if it is allowed.
    pub(crate) fn origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let allowed = self.allowed.as_ref()?;
        let origin = headers.get(ORIGIN).filter(|origin| !origin.is_empty())?;
        allowed.is_match(&header_text::text(origin)).then_some(origin)
    }
}

/// Adds the headers that allow a page of this origin.
pub(crate) fn grant(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.extend(GRANTS.map(|(name, value)| (name, HeaderValue::from_static(value))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, origin: &'static str, allowed: bool) {
        let cors =
            Cors::parse([expression]).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
        assert_eq!(cors.origin(&headers).is_some(), allowed, "{expression} {origin}");
    }

    #[test]
    fn an_origin_matches_an_expression() {
        check(r"//example\.com(:|$)", "https://example.com", true);
        check(r"//example\.com(:|$)", "https://example.com:8080", true);
        check(r"//example\.com(:|$)", "https://example.com.evil.org", false);
        check(r"//example\.com(:|$)", "", false);
        check(r"^https://.*\.example\.com$", "https://a.example.com", true);
        check(r"^https://.*\.example\.com$", "http://a.example.com", false);
    }

    #[test]
    fn no_expression_allows_no_origin() {
        let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static("https://a"))]);
        assert!(Cors::parse([]).expect("an empty list is valid").origin(&headers).is_none());
    }

    #[test]
    fn unanchored_expressions_are_refused() {
        for expression in ["", "example.com", "//example.com", "example.com$", "^(:"] {
            let refused = Cors::parse([expression]);
            assert!(matches!(refused, Err(Error::Flag { .. })), "{expression:?} {refused:?}");
        }
    }
}
