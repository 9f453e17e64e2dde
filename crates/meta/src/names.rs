//! Rules for names, and names made from a base.
//!
//! A rule returns what is wrong, in the words of `k8s.io/apimachinery/pkg/util/validation`; nothing
//! is wrong where the list is empty.

#[cfg(test)]
mod tests;

/// A rule for `metadata.name`; with `prefix` the text is a `generateName`, to which five characters
/// will be added (META-28).
pub type Rule = fn(name: &str, prefix: bool) -> Vec<String>;

/// A name that is a DNS-1123 subdomain: the rule of most kinds.
pub fn subdomain_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&masked(name, prefix))
}

/// A name that is a DNS-1123 subdomain, as kinds have it whose rules are declared (`k8s-long-name`): the
/// beginning of a generated one is not looked at.
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

/// A name that is a DNS-1123 label: the rule of namespaces.
pub fn label_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&masked(name, prefix))
}

/// A name that is a DNS-1035 label: the rule of services.
pub fn dns1035_rule(name: &str, prefix: bool) -> Vec<String> {
    dns1035_label(&masked(name, prefix))
}

/// A name that can stand in a path: the rule of the RBAC kinds.
pub fn path_segment_rule(name: &str, prefix: bool) -> Vec<String> {
    if prefix { path_segment_prefix(name) } else { path_segment(name) }
}

/// A base may end in the dash that separates it from the characters added. Upstream replaces the
/// dash and the character before it by a letter.
fn masked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    if prefix && name.is_ascii() && name.len() > 1 && name.ends_with('-') {
        format!("{}a", &name[..name.len() - 2]).into()
    } else {
        name.into()
    }
}

const NAME_LENGTH_MAX: usize = 63;
const SUFFIX_LENGTH: usize = 5;
/// No vowels and no look-alikes, so that no words and no confusion come out.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name made of a base, shortened if need be, and five characters that `random` decides
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

/// What is wrong with a DNS label as of RFC 1123: `my-name`, `123-abc`.
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

/// What is wrong with a DNS subdomain as of RFC 1123: `example.com`.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

/// `unit` is how the place calls the bytes that are counted: upstream says "characters" in most
/// places and "bytes" in label keys.
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

/// What is wrong with a DNS label as of RFC 1035: `my-name`, `abc-123`.
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

/// What is wrong with a name that is to stand in a URL's path.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_prefix(text),
    }
}

/// What is wrong with the beginning of a name that is to stand in a URL's path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    let banned = ["/", "%"].into_iter().filter(|part| text.contains(part));
    banned.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with a qualified name, a label key: `MyName`, `example.com/my.name`.
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

/// What is wrong with a label's value: `MyValue`, `my_value`, `12345`, or nothing at all.
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

/// Whether the text matches [`DNS1123_LABEL`], whatever its length.
fn is_dns1123_label(text: &str) -> bool {
    let inner = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
    !text.is_empty()
        && text.as_bytes().iter().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether the text matches [`DNS1123_SUBDOMAIN`], whatever its length.
pub(crate) fn is_dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns1123_label)
}

/// Whether the text matches [`QUALIFIED_NAME`], whatever its length.
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

/// What upstream says where a text does not match a pattern.
pub(crate) fn pattern_error(words: &str, pattern: &str, examples: &[&str]) -> String {
    let used = format!("regex used for validation is '{pattern}')");
    if examples.is_empty() {
        return format!("{words} ({used}");
    }
    let quoted: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}{used}", quoted.join(" or "))
}
