//! Content negotiation: the encoding and form of a response, and the encoding of a request body.
//!
//! Does no I/O. A new encoding needs a row in [`ENCODINGS`] and a writer in [`crate::respond`].

mod route;

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use pintle_meta::Status;
use pintle_registry::request::{Encoding, PatchType};

use crate::header_text;
use crate::media_type::{MediaRange, essence, parse_accept};
use crate::query::Query;

pub(crate) use route::Route;

/// The encodings and their media types, in upstream's order; the first is the default.
const ENCODINGS: [(&str, &str, Encoding); 4] = [
    ("application", "json", Encoding::Json),
    ("application", "yaml", Encoding::Yaml),
    ("application", "vnd.kubernetes.protobuf", Encoding::Protobuf),
    ("application", "cbor", Encoding::Cbor),
];

/// The encodings that an endpoint supports.
#[derive(Clone, Copy)]
pub(crate) struct Encodings {
    protobuf: bool,
    cbor: bool,
}

impl Encodings {
    /// All encodings.
    pub(crate) const ALL: Self = Self { protobuf: true, cbor: true };
    /// All but Protobuf: custom resources have no messages (MT-13).
    pub(crate) const WITHOUT_PROTOBUF: Self = Self { protobuf: false, cbor: true };

    fn rows(self) -> impl Iterator<Item = (&'static str, &'static str, Encoding)> {
        ENCODINGS.into_iter().filter(move |(.., encoding)| match encoding {
            Encoding::Json | Encoding::Yaml => true,
            Encoding::Protobuf => self.protobuf,
            Encoding::Cbor => self.cbor,
        })
    }

    /// The encoding of a media type.
    fn find(self, kind: &str, subtype: &str) -> Option<Encoding> {
        self.rows().find(|(k, s, _)| (*k, *s) == (kind, subtype)).map(|row| row.2)
    }

    /// The first encoding that a range covers.
    fn covered(self, range: &MediaRange<'_>) -> Option<Encoding> {
        self.rows().find(|(kind, subtype, _)| range.covers(kind, subtype)).map(|row| row.2)
    }

    /// The media types that a 406 or a 415 lists. Protobuf is listed for custom resources, too, as
    /// in upstream, whose serializer of custom resources has messages for Tables and metadata.
    fn media_types(self) -> String {
        let listed = Self { protobuf: true, ..self };
        let types: Vec<_> =
            listed.rows().map(|(kind, subtype, _)| format!("{kind}/{subtype}")).collect();
        types.join(", ")
    }

    /// The media types that the 406 of a watch lists. YAML has no stream.
    fn stream_types(self) -> String {
        let listed = Self { protobuf: true, ..self };
        let streams = listed.rows().filter(|(.., encoding)| *encoding != Encoding::Yaml);
        let types: Vec<_> = streams.map(|(.., encoding)| stream_type(encoding)).collect();
        types.join(", ")
    }
}

/// The media types of patches, in upstream's order.
const PATCHES: [(&str, PatchType); 5] = [
    ("application/json-patch+json", PatchType::Json),
    ("application/merge-patch+json", PatchType::Merge),
    ("application/strategic-merge-patch+json", PatchType::StrategicMerge),
    ("application/apply-patch+yaml", PatchType::Apply(Encoding::Yaml)),
    ("application/apply-patch+cbor", PatchType::Apply(Encoding::Cbor)),
];

/// The result of negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Negotiated {
    /// The encoding of the bytes.
    pub(crate) encoding: Encoding,
    /// Whether JSON is indented.
    pub(crate) pretty: bool,
    /// How objects are transformed before they are encoded.
    pub(crate) form: Form,
}

impl Negotiated {
    /// Whether the response is mostly stored bytes: compact JSON of whole objects.
    pub(crate) const fn is_stored_form(self) -> bool {
        matches!((self.encoding, self.pretty, self.form), (Encoding::Json, false, Form::Object))
    }
}

/// How objects are transformed before they are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Unchanged.
    Object,
    /// Rows of a Table (TBL-01).
    Table(MetaVersion),
    /// The metadata of an object (OAS-13).
    PartialObjectMetadata(MetaVersion),
    /// The metadata of a list's items.
    PartialObjectMetadataList(MetaVersion),
    /// Aggregated discovery (DISC-02).
    GroupDiscovery,
}

impl Form {
    /// Whether the form has a Protobuf message. Table rows hold values of any type, and the
    /// messages of `meta.k8s.io/v1beta1` have other field numbers.
    const fn has_message(self) -> bool {
        matches!(
            self,
            Self::Object
                | Self::GroupDiscovery
                | Self::PartialObjectMetadata(MetaVersion::V1)
                | Self::PartialObjectMetadataList(MetaVersion::V1)
        )
    }
}

/// The versions of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    /// The `apiVersion` of objects in this version.
    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The forms that an endpoint supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Only whole objects: Status, version, discovery of a group.
    Plain,
    /// Objects and their metadata, and Tables if the resource can be listed or read.
    Objects {
        /// Whether Tables are supported.
        tables: bool,
    },
    /// Discovery, aggregated or not.
    Discovery,
}

/// The headers and parameters that negotiation reads.
#[derive(Clone, Copy)]
pub(crate) struct Preferences<'a> {
    headers: &'a HeaderMap,
    pretty: bool,
    cbor: bool,
}

impl<'a> Preferences<'a> {
    /// Reads headers and query.
    pub(crate) fn new(headers: &'a HeaderMap, query: &Query) -> Self {
        let pretty = match query.get("pretty") {
            Some(value) if !value.is_empty() => {
                matches!(value, "1" | "t" | "T") || value.eq_ignore_ascii_case("true")
            }
            _ => is_interactive(headers),
        };
        Self { headers, pretty, cbor: false }
    }

    /// Whether JSON is indented.
    pub(crate) const fn is_pretty(&self) -> bool {
        self.pretty
    }

    /// The same preferences; `cbor` tells whether the feature gate of CBOR is on.
    pub(crate) const fn with_cbor(self, cbor: bool) -> Self {
        Self { cbor, ..self }
    }

    /// An endpoint's encodings without those whose feature gate is off.
    const fn known(&self, encodings: Encodings) -> Encodings {
        Encodings { cbor: encodings.cbor && self.cbor, ..encodings }
    }

    /// Negotiates the response's form and encoding, or returns 406.
    pub(crate) fn answer(&self, forms: Forms, encodings: Encodings) -> Result<Negotiated, Status> {
        let encodings = self.known(encodings);
        self.negotiate(forms, encodings)
            .ok_or_else(|| Status::not_acceptable(&encodings.media_types()))
    }

    /// Negotiates a watch's form and encoding, or returns 406. YAML is never accepted, because it
    /// has no stream (OAS-15).
    pub(crate) fn watch(&self, forms: Forms, encodings: Encodings) -> Result<Negotiated, Status> {
        let encodings = self.known(encodings);
        self.negotiate(forms, encodings)
            .filter(|negotiated| negotiated.encoding != Encoding::Yaml)
            .ok_or_else(|| Status::not_acceptable(&encodings.stream_types()))
    }

    /// The encoding of an error: the negotiated one, or indented JSON if none is acceptable.
    pub(crate) fn error(&self) -> Negotiated {
        self.negotiate(Forms::Plain, self.known(Encodings::ALL)).unwrap_or(Negotiated {
            encoding: Encoding::Json,
            pretty: true,
            form: Form::Object,
        })
    }

    fn negotiate(&self, forms: Forms, encodings: Encodings) -> Option<Negotiated> {
        let header = header_text::list(self.headers, &ACCEPT);
        if header.is_empty() {
            let encoding = Encoding::Json;
            return Some(Negotiated { encoding, pretty: self.pretty, form: Form::Object });
        }
        let ranges = parse_accept(&header);
        let mut acceptable = ranges.iter().filter_map(|range| {
            let encoding = encodings.covered(range)?;
            let form = forms.form(range)?;
            let streamed = range.parameter("stream").is_some_and(|stream| !stream.is_empty());
            if encoding == Encoding::Yaml && streamed
                || encoding == Encoding::Protobuf && !form.has_message()
                || encoding == Encoding::Cbor && matches!(form, Form::Table(_))
            {
                return None;
            }
            let pretty = self.pretty || range.parameter("pretty") == Some("1");
            Some(Negotiated { encoding, pretty, form })
        });
        if !matches!(forms, Forms::Discovery) {
            return acceptable.next();
        }
        // A client that accepts aggregated discovery gets it, even if the header prefers another
        // form.
        let acceptable: Vec<Negotiated> = acceptable.collect();
        let mut aggregated = acceptable.iter().filter(|it| it.form == Form::GroupDiscovery);
        aggregated.next().or(acceptable.first()).copied()
    }
}

impl Forms {
    /// The form of a media range; `None` if the endpoint does not support it.
    fn form(self, range: &MediaRange<'_>) -> Option<Form> {
        if range.parameter("stream").is_some_and(|stream| !matches!(stream, "" | "watch")) {
            return None;
        }
        if range.parameter("sv").is_some_and(|version| !matches!(version, "" | "v1")) {
            return None;
        }
        let part = |key| range.parameter(key).unwrap_or_default();
        let (kind, group, version) = (part("as"), part("g"), part("v"));
        if kind.is_empty() && group.is_empty() && version.is_empty() {
            return Some(Form::Object);
        }
        match (self, kind, group, version) {
            (Self::Discovery, "APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => {
                Some(Form::GroupDiscovery)
            }
            (Self::Objects { tables }, kind, "meta.k8s.io", version) => {
                let version = match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1Beta1,
                    _ => return None,
                };
                match kind {
                    "Table" if tables => Some(Form::Table(version)),
                    "PartialObjectMetadata" => Some(Form::PartialObjectMetadata(version)),
                    "PartialObjectMetadataList" => Some(Form::PartialObjectMetadataList(version)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Preferences<'_> {
    /// The encoding of an object in a request body, or 415; JSON without a `Content-Type` (MT-02).
    pub(crate) fn body(&self, encodings: Encodings) -> Result<Encoding, Status> {
        let encodings = self.known(encodings);
        let Some(content_type) = self.headers.get(CONTENT_TYPE).filter(|value| !value.is_empty())
        else {
            return Ok(Encoding::Json);
        };
        let found = essence(&header_text::text(content_type)).and_then(|essence| {
            let (kind, subtype) = essence.split_once('/')?;
            encodings.find(kind, subtype)
        });
        found.ok_or_else(|| Status::unsupported_media_type(&encodings.media_types()))
    }

    /// The type of a patch, or 415 (UPD-06). `strategic` is false for custom resources: they have
    /// no strategic merge patch (UPD-11), and no route that refuses the media type with its own
    /// text first.
    pub(crate) fn patch(&self, strategic: bool) -> Result<PatchType, Status> {
        let content_type = self.headers.get(CONTENT_TYPE).map(header_text::text);
        let content_type = content_type.as_deref().unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default();
        let is_known = |patch_type| match patch_type {
            PatchType::StrategicMerge => strategic,
            PatchType::Apply(Encoding::Cbor) => self.cbor,
            _ => true,
        };
        let known = || PATCHES.iter().filter(|(_, patch_type)| is_known(*patch_type));
        let routed = |named: &str| {
            let named = named.split(';').next().unwrap_or_default().trim_matches(' ');
            known().any(|(media_type, _)| *media_type == named)
        };
        if strategic && !content_type.split(',').any(routed) {
            return Err(Status::no_route_for_media_type());
        }
        let found = known().find(|(media_type, _)| *media_type == essence);
        found.map(|(_, patch_type)| *patch_type).ok_or_else(|| {
            let types: Vec<_> = known().map(|(media_type, _)| *media_type).collect();
            Status::unsupported_media_type(&types.join(", "))
        })
    }
}

/// The media type of an encoding.
pub(crate) const fn media_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "application/json",
        Encoding::Yaml => "application/yaml",
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        Encoding::Cbor => "application/cbor",
    }
}

/// The media type of a stream, as the 406 names it.
const fn stream_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "application/json;stream=watch",
        Encoding::Yaml => "application/yaml;stream=watch",
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        Encoding::Cbor => "application/cbor-seq",
    }
}

/// The media type of a watch; JSON has the same one as for objects.
pub(crate) const fn watch_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => media_type(encoding),
        _ => stream_type(encoding),
    }
}

/// Whether the user agent looks like a browser or a command line tool (OAS-10).
fn is_interactive(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
    [&b"curl"[..], b"Wget", b"Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests;
