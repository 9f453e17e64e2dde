//! Checks `Accept` against the media types that a route produces, before the handler runs.
//! Upstream's router compares media types as texts: it knows no ranges but `*/*`, and ignores
//! parameters and qualities (go-restful, `matchesAccept`). Custom resources and paths without
//! subpaths have no routes.

use http::header::ACCEPT;
use pintle_meta::Status;
use pintle_registry::request::Encoding;

use super::{Encodings, Preferences, media_type, stream_type};
use crate::header_text;

/// The media types that a route produces, in upstream's order.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    /// Media types of this route alone.
    own: &'static [&'static str],
    /// Includes the media types of objects.
    objects: bool,
    /// Includes the media types of watches.
    streams: bool,
}

impl Route {
    /// One object, or a document of discovery.
    pub(crate) const OBJECT: Self = Self { own: &[], objects: true, streams: false };
    /// A collection, listed or watched.
    pub(crate) const COLLECTION: Self = Self { own: &[], objects: true, streams: true };
    /// The log of a container.
    pub(crate) const LOG: Self = Self { own: &["text/plain"], objects: true, streams: false };
    /// A document in JSON.
    pub(crate) const JSON: Self =
        Self { own: &["application/json"], objects: false, streams: false };
    /// The keys of service account tokens.
    pub(crate) const KEYS: Self =
        Self { own: &["application/jwk-set+json"], objects: false, streams: false };

    fn produces(self, encodings: Encodings) -> impl Iterator<Item = &'static str> {
        let objects = encodings.rows().filter(move |_| self.objects);
        let streams = encodings.rows().filter(move |(.., encoding)| {
            self.streams && *encoding != Encoding::Yaml // OAS-15
        });
        let own = self.own.iter().copied();
        own.chain(objects.map(|(.., encoding)| media_type(encoding)))
            .chain(streams.map(|(.., encoding)| stream_type(encoding)))
    }
}

impl Preferences<'_> {
    /// Returns 406 if the route produces no media type that the client names.
    pub(crate) fn routed(&self, route: Route) -> Result<(), Status> {
        let header = header_text::list(self.headers, &ACCEPT);
        let encodings = self.known(Encodings::ALL);
        let takes = |range: &str| {
            let named = range.split(';').next().unwrap_or_default().trim_matches(' ');
            named == "*/*" || route.produces(encodings).any(|produced| produced == named)
        };
        if header.is_empty() || header.split(',').any(takes) {
            return Ok(());
        }
        let types: Vec<_> = route.produces(encodings).collect();
        Err(Status::no_representation(&types.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::query::Query;

    fn check(route: Route, accept: &str, expected: Result<(), &str>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        let found = Preferences::new(&headers, &Query::default()).routed(route);
        let expected = expected
            .map_err(|types| format!("406: Not Acceptable\n\nAvailable representations: {types}"));
        assert_eq!(found.map_err(|status| status.message), expected, "{accept}");
    }

    #[test]
    fn a_route_wants_one_of_its_types_by_name() {
        const OBJECT: &str =
            "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        const KEYS: &str = "application/jwk-set+json";
        check(Route::OBJECT, "", Ok(()));
        check(Route::OBJECT, "text/html, */*;q=0", Ok(()));
        check(Route::OBJECT, "application/json;as=Bogus", Ok(()));
        check(Route::OBJECT, "application/*", Err(OBJECT));
        check(Route::OBJECT, "APPLICATION/JSON", Err(OBJECT));
        check(Route::OBJECT, "application/cbor", Err(OBJECT));
        check(
            Route::COLLECTION,
            "application/cbor-seq",
            Err("application/json, application/yaml, application/vnd.kubernetes.protobuf, \
                 application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
        );
        check(Route::LOG, "text/plain", Ok(()));
        check(Route::JSON, "application/yaml", Err("application/json"));
        check(Route::KEYS, "application/json", Err(KEYS));
    }
}
