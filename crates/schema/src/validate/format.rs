//! The text formats of upstream's `+k8s:format` tags.

use pintle_meta::names;

/// Returns the errors of the text, in upstream's words. An unknown format accepts any text.
pub(super) fn check(format: &str, text: &str) -> Vec<String> {
    match format {
        "k8s-short-name" => names::dns1123_label(text),
        "k8s-long-name" => names::dns1123_subdomain(text),
        "k8s-long-name-caseless" => names::dns1123_subdomain(&text.to_ascii_lowercase()),
        "k8s-label-key" => names::qualified_name(text),
        "k8s-path-segment-name" => names::path_segment(text),
        "k8s-uuid" => uuid(text),
        "k8s-resource-pool-name" => pool_name(text),
        "k8s-extended-resource-name" => extended_resource_name(text),
        _ => Vec::new(),
    }
}

fn uuid(text: &str) -> Vec<String> {
    let fits = |(i, byte): (usize, u8)| match i {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    if text.len() == 36 && text.bytes().enumerate().all(fits) {
        return Vec::new();
    }
    vec!["must be a lowercase UUID in 8-4-4-4-12 format".to_owned()]
}

/// Long names separated by slashes.
fn pool_name(text: &str) -> Vec<String> {
    let segments = text.split('/').enumerate();
    segments
        .flat_map(|(i, segment)| {
            let wrong = match segment {
                "" => vec!["must not be empty".to_owned()],
                _ => names::dns1123_subdomain(segment),
            };
            wrong.into_iter().map(move |words| format!("segment {i}: {words}"))
        })
        .collect()
}

/// A name with a domain, which must also be valid as the resource of a quota.
fn extended_resource_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !text.contains('/') {
        wrong.push(
            "a name must be a domain-prefixed path, such as 'example.com/my-prop'".to_owned(),
        );
    } else if text.contains("kubernetes.io/") {
        wrong.push(r#"must not have "kubernetes.io/" domain"#.to_owned());
    }
    if text.starts_with("requests.") {
        wrong.push(r#"must not have "requests." prefix"#.to_owned());
    }
    wrong.extend(names::qualified_name(&format!("requests.{text}")));
    wrong
}
