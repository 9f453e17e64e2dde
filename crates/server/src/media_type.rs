//! Media types with parameters, and the `Accept` header.

/// A media type or range, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaRange<'a> {
    /// `application`, or `*`.
    pub(crate) kind: &'a str,
    /// `json`, or `*`.
    pub(crate) subtype: &'a str,
    /// Parameters other than `q`, in order.
    pub(crate) parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = match parts.next()?.split_once('/') {
            Some((kind, subtype)) if !subtype.contains('/') => (kind.trim(), subtype.trim()),
            Some(_) => return None,
            None if text.trim() == "*" => ("*", "*"),
            None => return None,
        };
        if kind.is_empty() || subtype.is_empty() {
            return None;
        }
        let mut range = Self { kind, subtype, parameters: Vec::new(), quality: 1.0 };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match (key.trim(), value.trim()) {
                ("q", value) => range.quality = value.parse().unwrap_or(0.0),
                pair => range.parameters.push(pair),
            }
        }
        Some(range)
    }

    /// Whether a type such as `application/json` is in the range.
    pub(crate) fn covers(&self, kind: &str, subtype: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (k, "*") => k == kind,
            (k, s) => k == kind && s == subtype,
        }
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, key: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }
}

/// The ranges of an `Accept` header, best first: by quality, then exact types before wildcards, then in
/// the order of the header. What has quality 0 or cannot be read is left out.
pub(crate) fn parse_accept(header: &str) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<_> =
        header.split(',').filter_map(MediaRange::parse).filter(|r| r.quality > 0.0).collect();
    let rank = |range: &MediaRange<'_>| {
        (-range.quality, u8::from(range.kind == "*"), u8::from(range.subtype == "*"))
    };
    ranges.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
    ranges
}

/// A `Content-Type` without its parameters, in lower case; `None` where it is none.
pub(crate) fn essence(header: &str) -> Option<String> {
    let range = MediaRange::parse(header)?;
    Some(format!("{}/{}", range.kind, range.subtype).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expected: &[&str]) {
        let ranges = parse_accept(header);
        let texts: Vec<_> = ranges.iter().map(|r| format!("{}/{}", r.kind, r.subtype)).collect();
        assert_eq!(texts, expected, "{header}");
    }

    #[test]
    fn ranges_are_ranked() {
        // MT-03
        check("application/json", &["application/json"]);
        check("application/yaml, application/json", &["application/yaml", "application/json"]);
        check(
            "application/yaml;q=0.5, application/json",
            &["application/json", "application/yaml"],
        );
        check("*/*, application/*, text/css", &["text/css", "application/*", "*/*"]);
        check("*", &["*/*"]);
        check("application/json;q=0, application/yaml", &["application/yaml"]);
        check("application/json;q=NaN", &[]);
        check(", ;, a/b/c, /json, application/", &[]);
    }

    #[test]
    fn parameters_are_kept() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";
        let ranges = parse_accept(header);
        assert_eq!(ranges[0].parameter("as"), Some("Table"));
        assert_eq!(ranges[0].parameter("g"), Some("meta.k8s.io"));
        assert_eq!(ranges[1].parameter("as"), None);
    }

    #[test]
    fn content_types_lose_their_parameters() {
        assert_eq!(essence("application/JSON; charset=utf-8").as_deref(), Some("application/json"));
        assert_eq!(essence("nonsense"), None);
        assert_eq!(essence(""), None);
    }
}
