//! `internal.apiserver.k8s.io`: off by default.

use std::collections::BTreeMap;

use pintle_meta::names;
use pintle_registry::NameRule;
use pintle_value::Value;

use crate::{
    field::{Errors, Field},
    kind::{Kind, kind},
    strategy::{Part, STATUS_ALONE, Strategy, WITH_STATUS, part},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("internal.apiserver.k8s.io", "storageversions", STORAGE_VERSION)];

const STORAGE_VERSION: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    name: NameRule::Custom(group_and_resource),
    parts: &[Part { validate: |new, _| check_status(&Field::root(new)), ..part("status") }],
    ..WITH_STATUS
};

/// Checks a name of the form `<group>.<resource>`.
fn group_and_resource(name: &str, _prefix: bool) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let labelled = |part: &str, wrong: Vec<String>| {
        wrong.into_iter().map(|words| format!("the {part} segment {words}")).collect::<Vec<_>>()
    };
    let mut wrong = labelled("group", names::dns1123_subdomain(group));
    wrong.extend(labelled("resource", names::dns1035_label(resource)));
    wrong
}

/// Checks the storage versions that servers report, and whether they agree.
fn check_status(object: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    let status = object.get("status");
    status.items("storageVersions").for_each(|server| check_server(&server, &mut errors));
    let mut written = status.items("storageVersions").map(|server| server.str("encodingVersion"));
    let first = written.next();
    let agreed = first.filter(|first| written.all(|other| other == *first));
    let common = status.get("commonEncodingVersion");
    match (agreed, common.is_set()) {
        (None, true) => {
            let words = "should be nil if servers do not agree on the same encoding version, or if \
                         there is no server reporting the supported versions yet";
            errors.push(common.invalid(words));
        }
        (Some(agreed), false) => {
            errors.push(common.invalid(format!("the common encoding version is {agreed}")));
        }
        (Some(agreed), true) if agreed != common.text() => {
            let words = format!("the actual common encoding version is {agreed}");
            errors.push(common.invalid(words));
        }
        _ => {}
    }
    check_conditions(&status, &mut errors);
    errors
}

fn check_server(server: &Field<'_>, errors: &mut Errors) {
    let (id, written) = (server.get("apiServerID"), server.get("encodingVersion"));
    id.all_invalid(names::dns1123_subdomain(id.text()), errors);
    let mut check = |version: &Field<'_>| {
        let wrong = wrong_version(version.text());
        if !wrong.is_empty() {
            errors.push(version.invalid_as(version.text(), wrong.join(",")));
        }
    };
    check(&written);
    server.items("decodableVersions").for_each(|version| check(&version));
    if !server.items("decodableVersions").any(|version| version.text() == written.text()) {
        let words = format!("decodableVersions must include encodingVersion {}", written.text());
        errors.push(server.get("decodableVersions").invalid(words));
    }
}

/// Checks the conditions. Upstream's paths lack `conditions`.
fn check_conditions(status: &Field<'_>, errors: &mut Errors) {
    // The last index of each type.
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let list = status.value().get("conditions").and_then(Value::as_array).unwrap_or_default();
    for (i, condition) in list.iter().enumerate() {
        let path = status.path().index(i);
        let text = |member: &str| condition.str_at(&[member]).unwrap_or_default();
        let kind = Value::from(text("type"));
        let mut invalid = |member: &str, words: String| {
            let path = path.field(member);
            errors.push(pintle_meta::field::Error::invalid(&path, &kind, words));
        };
        if let Some(other) = seen.insert(text("type"), i) {
            let words = "the type of the condition is not unique, it also appears in conditions";
            invalid("type", format!("{words}[{other}]"));
        }
        for member in ["type", "status"] {
            let wrong = names::qualified_name(text(member));
            wrong.into_iter().for_each(|words| invalid(member, words));
        }
        for member in ["reason", "message"] {
            if text(member).is_empty() {
                let words = format!("{member} cannot be empty");
                errors.push(pintle_meta::field::Error::required(&path.field(member), &words));
            }
        }
    }
}

/// Returns the errors of `group/version`, or `version`.
fn wrong_version(text: &str) -> Vec<String> {
    const EMPTY: &str = "must be non-empty";
    let part = |part: &str, text: &str, rule: fn(&str) -> Vec<String>| {
        let wrong = if text.is_empty() { vec![EMPTY.to_owned()] } else { rule(text) };
        wrong.into_iter().map(|words| format!("{part} part: {words}")).collect::<Vec<_>>()
    };
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [version] => part("version", version, names::dns1035_label),
        [group, version] => {
            let mut wrong = part("group", group, names::dns1123_subdomain);
            wrong.extend(part("version", version, names::dns1035_label));
            wrong
        }
        _ => vec![
            "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric \
             characters or '-', start with an alphabetic character, and end with an alphanumeric \
             character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyVersion')"
                .to_owned(),
        ],
    }
}
