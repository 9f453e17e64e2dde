//! Validation of names, and generated names.
//!
//! A rule returns the errors in the words of `k8s.io/apimachinery/pkg/util/validation`; the list is
//! empty for a valid name.

#[cfg(test)]
mod tests;

/// A rule for `metadata.name`. With `prefix`, the text is a `generateName`, to which five
/// characters will be appended (META-28).
pub type Rule = fn(name: &str, prefix: bool) -> Vec<String>;

/// Requires a DNS-1123 subdomain: the rule of most kinds.
pub fn subdomain_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&mask_trailing_dash(name, prefix))
}

/// Requires a DNS-1123 subdomain, for kinds with declarative validation (`k8s-long-name`). A
/// `generateName` is not validated.
pub fn long_name_rule(name: &str, prefix: bool) -> Vec<String> {
    let bytes = |words: String| match words.strip_suffix(" characters") {
        Some(head) if head.starts_with("must be no more than") => format!("{head} bytes"),
        _ => words,
    };
    match prefix {
        true => Vec::new(),
        false => dns1123_subdomain(name).into_iter().map(bytes).collect(),
    }
}

/// Requires a DNS-1123 label: the rule of namespaces.
pub fn label_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&mask_trailing_dash(name, prefix))
}

/// Requires a DNS-1035 label: the rule of services.
pub fn dns1035_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1035_label(&mask_trailing_dash(name, prefix))
}

/// Requires a valid path segment: the rule of the RBAC kinds.
pub fn path_segment_rule(name: &str, prefix: bool) -> Vec<String> {
    if prefix { path_segment_prefix(name) } else { path_segment(name) }
}

/// Prepares a `generateName` for validation. It may end in the dash before the appended characters;
/// as upstream does, the dash and the character before it are replaced by a letter.
fn mask_trailing_dash(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    if prefix && name.is_ascii() && name.len() > 1 && name.ends_with('-') {
        format!("{}a", &name[..name.len() - 2]).into()
    } else {
        name.into()
    }
}

const NAME_LENGTH_MAX: usize = 63;
const SUFFIX_LENGTH: usize = 5;
/// No vowels and no characters that look alike, so that no words and no ambiguous names result.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Generates a name: the base, truncated if necessary, and five characters derived from `random`
/// (META-26, META-27).
pub fn generate(base: &str, random: u64) -> String {
    let mut length = base.len().min(NAME_LENGTH_MAX - SUFFIX_LENGTH);
    while !base.is_char_boundary(length) {
        length -= 1;
    }
    let mut name = base[..length].to_owned();
    let mut rest = random;
    for _ in 0..SUFFIX_LENGTH {
        let letters = SUFFIX_ALPHABET.len() as u64;
        name.push(char::from(SUFFIX_ALPHABET[(rest % letters) as usize]));
        rest /= letters;
    }
    name
}

const LABEL_LENGTH_MAX: usize = 63;
pub(crate) const SUBDOMAIN_LENGTH_MAX: usize = 253;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Validates a DNS label (RFC 1123), such as `my-name` or `123-abc`.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_LENGTH_MAX, "characters");
    if !is_dns1123_label(text) {
        wrong.push(if is_dns1123_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    wrong
}

/// Validates a DNS subdomain (RFC 1123), such as `example.com`.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

/// `unit` is the unit in the message: upstream counts bytes but says "characters" in most messages,
/// and "bytes" for label keys.
fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_LENGTH_MAX, unit);
    if !is_dns1123_subdomain(text) {
        wrong.push(pattern_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN,
            &["example.com"],
        ));
    }
    wrong
}

/// Validates a DNS label (RFC 1035), such as `my-name` or `abc-123`.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_LENGTH_MAX, "characters");
    if !(is_dns1123_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        wrong.push(pattern_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character",
            DNS1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// Validates a name that becomes a segment of a URL's path.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_prefix(text),
    }
}

/// Validates the beginning of a name that becomes a segment of a URL's path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    let banned = ["/", "%"].into_iter().filter(|part| text.contains(part));
    banned.map(|part| format!("may not contain '{part}'")).collect()
}

/// Validates a qualified name, such as a label key: `MyName`, `example.com/my.name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                         and end with an alphanumeric character";
    let pattern = || pattern_error(WORDS, QUALIFIED_NAME, &["MyName", "my.name", "123-abc"]);

    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                pattern()
            )];
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let errors = subdomain(prefix, "bytes");
            wrong.extend(errors.into_iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    let long = too_long(name, LABEL_LENGTH_MAX, "bytes");
    wrong.extend(long.into_iter().map(|error| format!("name part {error}")));
    if !is_qualified(name) {
        wrong.push(format!("name part {}", pattern()));
    }
    wrong
}

/// Validates a label's value: `MyValue`, `my_value`, `12345`, or empty.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_LENGTH_MAX, "bytes");
    if !text.is_empty() && !is_qualified(text) {
        wrong.push(pattern_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// Whether the text matches [`DNS1123_LABEL`], regardless of its length.
fn is_dns1123_label(text: &str) -> bool {
    is_label(text.as_bytes())
}

fn is_label(text: &[u8]) -> bool {
    let inner = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
    !matches!(text, [] | [b'-', ..] | [.., b'-']) && text.iter().all(inner)
}

/// Whether the text matches [`DNS1123_SUBDOMAIN`], regardless of its length.
pub(crate) fn is_dns1123_subdomain(text: &str) -> bool {
    text.as_bytes().split(|byte| *byte == b'.').all(is_label)
}

/// Whether the text matches [`QUALIFIED_NAME`], regardless of its length.
fn is_qualified(text: &str) -> bool {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inner)
}

pub(crate) fn too_long(text: &str, bytes_max: usize, unit: &str) -> Vec<String> {
    if text.len() > bytes_max {
        vec![format!("must be no more than {bytes_max} {unit}")]
    } else {
        Vec::new()
    }
}

/// Upstream's message for a text that does not match a pattern.
pub(crate) fn pattern_error(words: &str, pattern: &str, examples: &[&str]) -> String {
    let used = format!("regex used for validation is '{pattern}')");
    if examples.is_empty() {
        return format!("{words} ({used}");
    }
    let quoted: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}{used}", quoted.join(" or "))
}
