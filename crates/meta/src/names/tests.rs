use proptest::prelude::*;

use super::*;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
     is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
     '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check(rule: fn(&str) -> Vec<String>, rows: &[(&str, &[&str])]) {
    for (text, wrong) in rows {
        assert_eq!(rule(text), *wrong, "{text}");
    }
}

#[test]
fn dns_names_are_validated() {
    let (l63, l64) = ("a".repeat(63), "a".repeat(64));
    let (s253, s254) = (["a"; 127].join("."), format!("{}b", ["a"; 127].join(".")));
    check(
        dns1123_label,
        &[
            ("a", &[]),
            ("1-a", &[]),
            (&l63, &[]),
            (&l64, &["must be no more than 63 characters"]),
            ("a.b", &["must not contain dots"]),
            ("", &[LABEL]),
            ("-a", &[LABEL]),
            ("a-", &[LABEL]),
            ("A", &[LABEL]),
            ("a_b", &[LABEL]),
            ("é", &[LABEL]),
        ],
    );
    check(
        dns1123_subdomain,
        &[
            ("a.1-b.c", &[]),
            (&l64, &[]),
            (&s253, &[]),
            (&s254, &["must be no more than 253 characters"]),
            ("", &[SUBDOMAIN]),
            ("a..b", &[SUBDOMAIN]),
            (".a", &[SUBDOMAIN]),
            ("a.", &[SUBDOMAIN]),
            ("a.-b", &[SUBDOMAIN]),
        ],
    );
    check(
        dns1035_label,
        &[
            ("a-1", &[]),
            (&l64, &["must be no more than 63 characters"]),
            ("1a", &[DNS1035]),
            ("", &[DNS1035]),
            ("a.b", &[DNS1035]),
        ],
    );
    check(
        path_segment,
        &[
            ("", &[]),
            ("system:node", &[]),
            (".", &["may not be '.'"]),
            ("..", &["may not be '..'"]),
            ("...", &[]),
            ("a/b%", &["may not contain '/'", "may not contain '%'"]),
        ],
    );
    check(path_segment_prefix, &[("..", &[]), ("a%", &["may not contain '%'"])]);
}

/// META-08
#[test]
fn label_keys_and_values_are_validated() {
    let (n63, n64) = ("N".repeat(63), "N".repeat(64));
    let name = |wrong: &str| format!("name part {wrong}");
    check(
        qualified_name,
        &[
            ("MyName", &[]),
            ("1.2_3-4", &[]),
            ("example.com/x", &[]),
            (&n63, &[]),
            (&n64, &["name part must be no more than 63 bytes"]),
            ("", &["name part must be non-empty", &name(QUALIFIED)]),
            ("a/", &["name part must be non-empty", &name(QUALIFIED)]),
            ("/a", &["prefix part must be non-empty"]),
            ("A/a", &[&format!("prefix part {SUBDOMAIN}")]),
            ("_a", &[&name(QUALIFIED)]),
            (
                "a/b/c",
                &[&format!(
                    "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' \
                     (e.g. 'example.com/MyName')"
                )],
            ),
        ],
    );
    check(
        label_value,
        &[
            ("", &[]),
            ("a_B.1", &[]),
            (&n63, &[]),
            (&n64, &["must be no more than 63 bytes"]),
            ("a b", &[VALUE]),
            ("-", &[VALUE]),
        ],
    );
}

/// META-28
#[test]
fn a_generate_name_may_end_in_a_dash() {
    for (rule, text, prefix, right) in [
        (subdomain_rule as Rule, "a-", true, true),
        (subdomain_rule, "a-", false, false),
        (subdomain_rule, "-", true, false),
        (subdomain_rule, "X_", true, false),
        (subdomain_rule, "a.b-", true, true),
        (subdomain_rule, "é-", true, false),
        (label_rule, "a-", true, true),
        (label_rule, "a.b-", true, false),
        (dns1035_rule, "a-", true, true),
        (path_segment_rule, "..", true, true),
        (path_segment_rule, "..", false, false),
    ] {
        assert_eq!(rule(text, prefix).is_empty(), right, "{text} {prefix}");
    }
}

#[test]
fn names_are_generated_from_the_generate_name() {
    assert_eq!(generate("x-", 0), "x-bbbbb");
    assert_eq!(generate("x-", 26 + 27 * (25 + 27 * 2)), "x-98dbb");
    // META-27
    assert_eq!(generate(&"a".repeat(80), 0), format!("{}bbbbb", "a".repeat(58)));
    assert_eq!(generate(&"é".repeat(80), 0), format!("{}bbbbb", "é".repeat(29)));
}

proptest! {
    /// META-26
    #[test]
    fn generated_names_are_valid(base in "[a-z0-9.-]{0,70}", random: u64) {
        let name = generate(&base, random);
        prop_assert!(name.len() <= 63);
        let (start, end) = name.split_at(name.len() - 5);
        prop_assert!(base.starts_with(start));
        prop_assert!(end.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)));
        if dns1123_subdomain(start.trim_end_matches('-')).is_empty() {
            prop_assert!(subdomain_rule(&name, false).is_empty(), "{}", name);
        }
    }
}
