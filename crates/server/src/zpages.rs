//! `/statusz` and `/flagz`: the server's state and its flags, as text and as objects of
//! `config.k8s.io` (OAS-07).

use std::collections::BTreeMap;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WARNING};
use pintle_meta::{Status, time};
use pintle_registry::request::Encoding;
use serde::Serialize;

use crate::body::Body;
use crate::handlers::Call;
use crate::header_text;
use crate::media_type::parse_accept;
use crate::negotiation::{Form, Negotiated, Preferences, media_type};
use crate::respond::{Response, document, text};
use crate::version;

/// Upstream's name of kube-apiserver on these pages.
const COMPONENT: &str = "apiserver";
const GROUP: &str = "config.k8s.io";

/// One of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Statusz,
    Flagz,
}

/// The versions of the pages' kinds. A page as text has the members of the newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1Alpha1,
    V1Beta1,
}

/// The paths of the pages.
pub(crate) const PATHS: [&str; 2] = ["/flagz", "/statusz"];

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Text,
    Object(Encoding, Version),
}

/// The media types in upstream's order; only text needs no kind.
const MEDIA_TYPES: [(&str, &str, Option<Encoding>); 4] = [
    ("application", "json", Some(Encoding::Json)),
    ("application", "yaml", Some(Encoding::Yaml)),
    ("text", "plain", None),
    ("application", "cbor", Some(Encoding::Cbor)),
];

impl Page {
    /// The page of a path, if its feature gate is on.
    pub(crate) fn at(path: &str, call: &Call<'_>) -> Option<Self> {
        match path {
            "/statusz" if call.api.settings.statusz => Some(Self::Statusz),
            "/flagz" if call.api.settings.flagz => Some(Self::Flagz),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Statusz => "statusz",
            Self::Flagz => "flagz",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Statusz => "Statusz",
            Self::Flagz => "Flagz",
        }
    }

    /// Serves the page; `paths` are all paths of the server.
    pub(crate) fn answer(self, call: &Call<'_>, paths: &[String]) -> Result<Response, Status> {
        let headers = &call.head.headers;
        let (encoding, version) = match self.shape(headers, call.api.settings.cbor)? {
            Shape::Text => return Ok(self.text(call, paths)),
            Shape::Object(encoding, version) => (encoding, version),
        };
        let metadata = Metadata { name: COMPONENT };
        let (kind, api_version) = (self.kind(), version.api_version());
        let json = match self {
            Self::Statusz => {
                let (kind, state) = (kind, State::of(call, paths));
                serde_json::to_vec(&Object { kind, api_version, metadata, rest: state })
            }
            Self::Flagz => {
                let flags = Flags { flags: flags(call) };
                serde_json::to_vec(&Object { kind, api_version, metadata, rest: flags })
            }
        };
        let pretty = Preferences::new(headers, call.query).is_pretty();
        let negotiated = Negotiated { encoding, pretty, form: Form::Object };
        let body = Body::full(json.map_err(Status::internal)?);
        let mut response = document(200, body, negotiated);
        let media_type =
            format!("{};g={GROUP};v={};as={}", media_type(encoding), version.name(), self.kind());
        let media_type = HeaderValue::from_str(&media_type).map_err(Status::internal)?;
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        if version == Version::V1Alpha1 {
            response.headers_mut().insert(WARNING, self.deprecation());
        }
        Ok(response)
    }

    const fn deprecation(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Statusz => {
                "299 - \"This version of the statusz endpoint is deprecated. Please use a newer version.\""
            }
            Self::Flagz => {
                "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\""
            }
        })
    }

    fn text(self, call: &Call<'_>, paths: &[String]) -> Response {
        let mut page = format!(
            "\n{COMPONENT} {}\nWarning: This endpoint is not meant to be machine parseable, has no \
             formatting compatibility guarantees and is for debugging purposes only.\n",
            self.name()
        );
        match self {
            Self::Statusz => page.push_str(&State::of(call, paths).text()),
            Self::Flagz => {
                let lines =
                    flags(call).into_iter().map(|(name, value)| format!("{name}={value}\n"));
                page.extend(lines);
            }
        }
        let mut response = text(200, page);
        let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }

    /// The format that the client accepts, or 406.
    fn shape(self, headers: &HeaderMap, cbor: bool) -> Result<Shape, Status> {
        let accepted = header_text::list(headers, &ACCEPT);
        if accepted.trim().is_empty() {
            return Ok(Shape::Text);
        }
        let known = || {
            let known = MEDIA_TYPES.into_iter();
            known.filter(move |(.., encoding)| cbor || *encoding != Some(Encoding::Cbor))
        };
        for range in parse_accept(&accepted) {
            let has = |key| range.parameter(key).is_some_and(|value| !value.is_empty());
            if has("sv") || has("stream") {
                continue;
            }
            let asked = ["as", "g", "v"].map(|key| range.parameter(key));
            let covered = known().filter(|(kind, subtype, _)| range.covers(kind, subtype));
            let shapes = covered.map(|(.., encoding)| match (encoding, asked) {
                (None, [None, None, None]) => Some(Shape::Text),
                (Some(encoding), [Some(kind), Some(GROUP), Some(version)])
                    if kind == self.kind() =>
                {
                    Version::named(version).map(|version| Shape::Object(encoding, version))
                }
                _ => None,
            });
            if let Some(shape) = shapes.flatten().next() {
                return Ok(shape);
            }
        }
        let types: Vec<_> = known().map(|(kind, subtype, _)| format!("{kind}/{subtype}")).collect();
        Err(Status::not_acceptable(&types.join(", ")))
    }
}

impl Version {
    fn named(name: &str) -> Option<Self> {
        match name {
            "v1alpha1" => Some(Self::V1Alpha1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    const fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "config.k8s.io/v1alpha1",
            Self::V1Beta1 => "config.k8s.io/v1beta1",
        }
    }
}

/// A page as an object, members in upstream's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<R> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata,
    #[serde(flatten)]
    rest: R,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Serialize)]
struct Flags<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    flags: BTreeMap<&'a str, &'a str>,
}

/// The flags with their values, defaults included, sorted by name.
fn flags<'a>(call: &'a Call<'_>) -> BTreeMap<&'a str, &'a str> {
    let flags = call.api.settings.flags.iter();
    flags.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The state of the server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    start_time: String,
    uptime_seconds: i64,
    go_version: &'static str,
    binary_version: &'static str,
    emulation_version: String,
    paths: Vec<String>,
    #[serde(skip)]
    started: i64,
}

impl State {
    fn of(call: &Call<'_>, paths: &[String]) -> Self {
        let started = call.api.metrics.started_at_unix_seconds;
        Self {
            start_time: time::format(started.saturating_mul(time::SECOND)),
            uptime_seconds: call.now.unix_seconds().saturating_sub(started).max(0),
            go_version: version::GO_VERSION,
            binary_version: version::GIT_VERSION.trim_start_matches('v'),
            emulation_version: call.api.settings.version.emulation(),
            paths: for_debugging(paths),
            started,
        }
    }

    fn text(&self) -> String {
        let up = self.uptime_seconds;
        format!(
            "\nStarted: {}\nUp: {} hr {:02} min {:02} sec\nGo version: {}\nBinary version: {}\n\
             Emulation version: {}\nPaths: {}\n",
            unix_date(self.started),
            up / 3600,
            up / 60 % 60,
            up % 60,
            self.go_version,
            self.binary_version,
            self.emulation_version,
            self.paths.join(" "),
        )
    }
}

/// Formats a time as `date` does in UTC: `Mon Jan  2 15:04:05 UTC 2006`.
fn unix_date(unix_seconds: i64) -> String {
    const DAY: i64 = 24 * 60 * 60;
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (unix_seconds.div_euclid(DAY), unix_seconds.rem_euclid(DAY));
    let (year, month, day) = time::civil_from_days(days);
    let weekday = WEEKDAYS[days.rem_euclid(7).unsigned_abs() as usize];
    let month = MONTHS[(month - 1).rem_euclid(12).unsigned_abs() as usize];
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{:02} UTC {year}", second % 60)
}

/// The first segments of paths, sorted, without those of the API, OpenAPI, OpenID and `/statusz`.
fn for_debugging(paths: &[String]) -> Vec<String> {
    const OTHERS: [&str; 6] = ["api", "apis", "openapi", "openid", ".well-known", "statusz"];
    let first = |path: &String| path.split('/').nth(1).map(str::to_owned);
    let mut firsts: Vec<String> = paths.iter().filter_map(first).collect();
    firsts.retain(|first| !first.is_empty() && !OTHERS.contains(&first.as_str()));
    firsts.sort_unstable();
    firsts.dedup();
    firsts.into_iter().map(|first| format!("/{first}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: Page, accept: &str, expected: Result<Shape, &str>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        let found = page.shape(&headers, false).map_err(|status| status.message);
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
    }

    #[test]
    fn a_page_is_text_unless_its_kind_is_asked_for() {
        const TYPES: &str = "only the following media types are accepted: \
            application/json, application/yaml, text/plain";
        let structured = "application/json;as=Statusz;g=config.k8s.io;v=v1beta1";
        let yaml = "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz, text/plain;q=0.5";
        check(Page::Statusz, " ", Ok(Shape::Text));
        check(Page::Statusz, "*/*", Ok(Shape::Text));
        check(Page::Flagz, "application/json, text/plain", Ok(Shape::Text));
        check(Page::Statusz, structured, Ok(Shape::Object(Encoding::Json, Version::V1Beta1)));
        check(Page::Flagz, yaml, Ok(Shape::Object(Encoding::Yaml, Version::V1Alpha1)));
        check(Page::Statusz, yaml, Ok(Shape::Text));
        check(Page::Flagz, structured, Err(TYPES));
        check(Page::Flagz, "application/json", Err(TYPES));
        check(Page::Flagz, "application/cbor;as=Flagz;g=config.k8s.io;v=v1beta1", Err(TYPES));
        check(Page::Statusz, "text/plain;as=Statusz;g=config.k8s.io;v=v1beta1", Err(TYPES));
    }

    #[test]
    fn times_have_the_format_of_date() {
        for (seconds, expected) in [
            (0, "Thu Jan  1 00:00:00 UTC 1970"),
            (1_136_214_245, "Mon Jan  2 15:04:05 UTC 2006"),
            (1_795_178_096, "Fri Nov 20 12:34:56 UTC 2026"),
        ] {
            assert_eq!(unix_date(seconds), expected);
        }
    }

    #[test]
    fn paths_are_listed_by_first_segment() {
        let paths = ["/apis/apps", "/", "/livez/ping", "/livez", "/metrics/slis", "/statusz"];
        assert_eq!(for_debugging(&paths.map(str::to_owned)), ["/livez", "/metrics"]);
    }
}
