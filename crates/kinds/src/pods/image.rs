//! The default pull policy of an image reference.

/// Returns `Always` if the reference has the tag `latest`, or neither a tag nor a digest.
/// Otherwise, and for an invalid reference, returns `IfNotPresent`.
pub(crate) fn pull_policy(reference: &str) -> &'static str {
    match tag(reference) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// The tag of an image reference: `latest` if it has neither tag nor digest; `None` if it has only
/// a digest, or is not a reference.
fn tag(reference: &str) -> Option<&str> {
    let (named, digest) = match reference.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (reference, None),
    };
    // A colon behind the last slash begins a tag; one before it belongs to the registry's port.
    let name_start = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[name_start..].find(':') {
        Some(colon) => (&named[..name_start + colon], Some(&named[name_start + colon + 1..])),
        None => (named, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return None;
    }
    tag.or(if digest.is_none() { Some("latest") } else { None })
}

/// The longest path of an image, without its registry.
const PATH_BYTES_MAX: usize = 255;

/// Whether the text has the form `[registry[:port]/]path/…`; upstream refuses a bare identifier of
/// 64 hexadecimal digits.
fn is_name(name: &str) -> bool {
    let is_identifier = name.len() == 64 && name.bytes().all(is_lower_hex);
    let (registry, path) = match name.split_once('/') {
        Some((registry, path)) if is_meant_as_registry(registry) => (registry, path),
        _ => ("docker.io", name),
    };
    // A name without a namespace is in this one.
    let is_official = matches!(registry, "docker.io" | "index.docker.io") && !path.contains('/');
    let namespace = if is_official { "library/" } else { "" };
    !is_identifier
        && is_registry(registry)
        && namespace.len() + path.len() <= PATH_BYTES_MAX
        && path.split('/').all(is_path_component)
}

/// Whether the first component names a registry rather than a part of the path, validly or not.
fn is_meant_as_registry(component: &str) -> bool {
    component.contains(['.', ':'])
        || component == "localhost"
        || component.contains(|c: char| c.is_ascii_uppercase())
}

/// Whether the text is a host name or an IPv6 address in brackets, with a port or without.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_ipv6 = |address: &str| {
        !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => is_ipv6(address),
        None => host.split('.').all(is_host_label),
    };
    is_host && port.is_none_or(is_port)
}

/// Letters, digits and inner dashes.
fn is_host_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Lower-case letters and digits, separated by one dot, one or two underscores, or dashes.
fn is_path_component(component: &str) -> bool {
    let is_word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_in_words = bytes.first().is_some_and(is_word) && bytes.last().is_some_and(is_word);
    let mut separators = component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends_in_words
        && separators.all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let first = tag.bytes().next();
    tag.len() <= 128
        && first.is_some_and(inner)
        && tag.bytes().all(|b| inner(b) || b == b'.' || b == b'-')
}

/// Whether the text is an algorithm, a colon and at least 32 hexadecimal digits.
fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty() && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

const fn is_lower_hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn the_tag_decides_the_pull_policy() {
        const DIGEST: &str =
            "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let rows = [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("library/nginx", "Always"),
            ("registry.k8s.io/pause:3.10", "IfNotPresent"),
            ("localhost:5000/app", "Always"),
            ("localhost:5000/app:v1", "IfNotPresent"),
            ("[::1]:5000/app", "Always"),
            ("[::1]/app", "Always"),
            ("host:port/app", "IfNotPresent"),
            ("../app", "IfNotPresent"),
            ("2001:db8::/32", "IfNotPresent"),
            (&"a".repeat(247), "Always"),
            (&"a".repeat(248), "IfNotPresent"),
            (&format!("quay.io/{}", "a".repeat(255)), "Always"),
            (&format!("nginx{DIGEST}"), "IfNotPresent"),
            (&format!("nginx:latest{DIGEST}"), "Always"),
            ("a__b/c.d/e--f", "Always"),
            ("a___b", "IfNotPresent"),
            ("Upper/case", "Always"),
            ("lower/Case", "IfNotPresent"),
            ("", "IfNotPresent"),
            (" nginx", "IfNotPresent"),
            ("nginx:", "IfNotPresent"),
            ("nginx@sha256:beef", "IfNotPresent"),
            (&"a".repeat(64), "IfNotPresent"),
        ];
        for (reference, expected) in rows {
            assert_eq!(pull_policy(reference), expected, "{reference:?}");
        }
    }
}
