//! The rules for FlowSchemas and PriorityLevelConfigurations, in upstream's order.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names, object};
use pintle_value::{Value, json};

use super::mandatory;
use crate::{
    checks::same,
    field::{Errors, Field},
    formats::within,
    rules::{
        Rule::{Do, Each, Needed},
        Rules, check, choice, required,
    },
};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
/// The number of bits of a request's hash that choose its hand of queues.
const HASH_BITS: u32 = 60;
const EXEMPT: &str = "exempt";

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Validates a flow schema.
pub(super) fn validate_schema(schema: &Value) -> Errors {
    let mut errors = Errors::new();
    let name = object::name(schema);
    let schema = Field::root(schema);
    let spec = schema.get("spec");
    let precedence = spec.get("matchingPrecedence");
    let number = precedence.int().unwrap_or(0);
    if number <= 0 {
        errors.push(precedence.invalid_as(number, "must be a positive value"));
    }
    if number > PRECEDENCE_MAX {
        errors.push(precedence.invalid(format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if number == 1 && name != EXEMPT {
        let words = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(precedence.invalid(words));
    }
    if let Some(method) = spec.find("distinguisherMethod") {
        let allowed = &["ByNamespace", "ByUser"];
        if !allowed.contains(&method.str("type")) {
            // The error shows the method in upstream's internal form.
            let shown = format!(r#"{{"Type":{}}}"#, json::to_string(method.get("type").value()));
            errors.push(Error { value: Some(shown), ..method.get("type").not_supported(allowed) });
        }
    }
    let level = spec.get("priorityLevelConfiguration");
    let level = level.get("name");
    if level.is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        level.all_invalid(names::dns1123_subdomain(level.text()), &mut errors);
    }
    check(&spec, &[Each("rules", RULE)], &mut errors);
    let mandatory = mandatory::spec("flowSchemas", name);
    if mandatory.is_some_and(|mandatory| !same(Some(mandatory), Some(spec.value()))) {
        errors.push(spec.invalid(format!("spec of '{name}' must equal the fixed value")));
    }
    errors
}

const RULE: Rules = &[
    Needed("subjects", "subjects must contain at least one value"),
    Each("subjects", &[Do(check_subject)]),
    Do(|rule, errors| {
        if rule.get("resourceRules").is_empty() && rule.get("nonResourceRules").is_empty() {
            let words = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.push(rule.required(words));
        }
    }),
    Each("resourceRules", &[Do(check_resource_rule)]),
    Each("nonResourceRules", &[Do(check_url_rule)]),
];

/// The kinds of subjects, each with the member that has the subject.
const SUBJECTS: &[(&str, &str)] =
    &[("User", "user"), ("ServiceAccount", "serviceAccount"), ("Group", "group")];

fn check_subject(subject: &Field<'_>, errors: &mut Errors) {
    let kind = subject.get("kind");
    let Some((_, own)) = SUBJECTS.iter().find(|(name, _)| *name == kind.text()) else {
        return errors.push(kind.not_supported(&["Group", "ServiceAccount", "User"]));
    };
    let field = subject.get(own);
    if !field.is_set() {
        let words = format!("{own} is required when subject kind is '{}'", kind.text());
        errors.push(field.required(&words));
    } else {
        check_named(&field, *own == "serviceAccount", errors);
    }
    let order = ["serviceAccount", "user", "group"];
    for other in order.iter().filter(|other| *other != own && subject.has(other)) {
        let name = SUBJECTS.iter().find(|(_, member)| member == other).map_or("", |row| row.0);
        let words = format!("{other} is forbidden when subject kind is not '{name}'");
        errors.push(subject.get(other).forbidden(words));
    }
}

fn check_named(field: &Field<'_>, is_account: bool, errors: &mut Errors) {
    let name = field.get("name");
    required(&name, "", errors);
    if !is_account {
        return;
    }
    if !name.is_empty() && name.text() != "*" {
        name.all_invalid(names::dns1123_subdomain(name.text()), errors);
    }
    let namespace = field.get("namespace");
    if namespace.is_empty() {
        errors.push(namespace.required("must specify namespace for service account"));
    } else {
        namespace.all_invalid(names::dns1123_label(namespace.text()), errors);
    }
}

fn has_star(rule: &Field<'_>, list: &str) -> bool {
    rule.items(list).any(|item| item.text() == "*")
}

/// Checks a list that must not be empty, and in which `*` must be alone.
fn check_list(rule: &Field<'_>, list: &str, empty: &str, others: &str, errors: &mut Errors) {
    let field = rule.get(list);
    if field.is_empty() {
        errors.push(field.required(empty));
    } else if rule.items(list).len() > 1 && has_star(rule, list) {
        let words = format!("if '*' is present, must not specify other {others}");
        errors.push(field.invalid(words));
    }
}

fn check_verbs(rule: &Field<'_>, errors: &mut Errors) {
    check_list(rule, "verbs", "verbs must contain at least one value", "verbs", errors);
    let known = |verb: Field<'_>| VERBS.contains(&verb.text());
    if !has_star(rule, "verbs") && !rule.items("verbs").all(known) {
        errors.push(rule.get("verbs").not_supported(VERBS));
    }
}

fn check_resource_rule(rule: &Field<'_>, errors: &mut Errors) {
    check_verbs(rule, errors);
    let words = "resource rules must supply at least one api group";
    check_list(rule, "apiGroups", words, "api groups", errors);
    let words = "resource rules must supply at least one resource";
    check_list(rule, "resources", words, "resources", errors);
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        let words = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(namespaces.required(words));
    } else if has_star(rule, "namespaces") {
        check_list(rule, "namespaces", "", "namespaces", errors);
    } else {
        for namespace in rule.items("namespaces") {
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            for words in names::dns1123_label(namespace.text()) {
                errors.push(namespace.invalid(format!("{intro}{words}")));
            }
        }
    }
}

fn check_url_rule(rule: &Field<'_>, errors: &mut Errors) {
    check_verbs(rule, errors);
    let words = "nonResourceURLs must contain at least one value";
    check_list(rule, "nonResourceURLs", words, "non-resource URLs", errors);
    if !has_star(rule, "nonResourceURLs") {
        for url in rule.items("nonResourceURLs") {
            errors.extend(wrong_url(url.text()).map(|words| url.invalid(words)));
        }
    }
}

fn wrong_url(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

/// Validates a priority level.
pub(super) fn validate_level(level: &Value) -> Errors {
    let mut errors = Errors::new();
    let name = object::name(level);
    let level = Field::root(level);
    let spec = level.get("spec");
    let kind = spec.get("type");
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        let words = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(kind.invalid_as(kind.text(), words));
    }
    let (exempt, limited) = (spec.get("exempt"), spec.get("limited"));
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            if exempt.is_set() {
                check_shares(&exempt, &mut errors);
            }
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_set() {
                check_limited(&limited, &mut errors);
            } else {
                errors.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => choice(&kind, &["Exempt", "Limited"], &mut errors),
    }
    check_mandatory_level(name, &spec, &mut errors);
    errors
}

/// Checks that a mandatory level has its fixed spec. Only `spec.exempt` of the level `exempt` may
/// change.
fn check_mandatory_level(name: &str, spec: &Field<'_>, errors: &mut Errors) {
    let Some(mandatory) = mandatory::spec("priorityLevels", name) else { return };
    let (mut found, mut but) = (spec.value().clone(), "");
    if name == EXEMPT {
        but = " except the 'spec.exempt' field";
        let exempt = mandatory.get("exempt").cloned().unwrap_or_default();
        found.make_object().insert("exempt", exempt);
    }
    if !same(Some(mandatory), Some(&found)) {
        errors.push(spec.invalid(format!("spec of '{name}'{but} must equal the fixed value")));
    }
}

fn check_shares(level: &Field<'_>, errors: &mut Errors) {
    let shares = level.get("nominalConcurrencyShares");
    if shares.int().is_some_and(|shares| shares < 0) {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    check_lendable(level, errors);
}

fn check_lendable(level: &Field<'_>, errors: &mut Errors) {
    let lendable = level.get("lendablePercent");
    if lendable.int().is_some_and(|percent| !(0..=100).contains(&percent)) {
        errors.push(lendable.invalid(within(0, 100)));
    }
}

fn check_limited(limited: &Field<'_>, errors: &mut Errors) {
    let shares = limited.get("nominalConcurrencyShares");
    if shares.int().is_some_and(|shares| shares < 0) {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    check_response(&limited.get("limitResponse"), errors);
    check_lendable(limited, errors);
    let borrowed = limited.get("borrowingLimitPercent");
    if borrowed.int().is_some_and(|percent| percent < 0) {
        errors.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
}

/// Upstream's messages say `Limited` instead of `Queue`.
fn check_response(response: &Field<'_>, errors: &mut Errors) {
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            let words = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(queuing.forbidden(words));
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => check_queuing(&queuing, errors),
        "Queue" => {
            let words = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(queuing.required(words));
        }
        _ => choice(&kind, &["Queue", "Reject"], errors),
    }
}

fn check_queuing(queuing: &Field<'_>, errors: &mut Errors) {
    let of = |member: &'static str| queuing.get(member).int().unwrap_or(0);
    let mut wrong = |member: &'static str, words: String| {
        errors.push(queuing.get(member).invalid_as(of(member), words));
    };
    let (queues, hand) = (of("queues"), of("handSize"));
    if of("queueLengthLimit") <= 0 {
        wrong("queueLengthLimit", "must be positive".to_owned());
    }
    if queues <= 0 {
        wrong("queues", "must be positive".to_owned());
    } else if queues > QUEUES_MAX {
        wrong("queues", format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand <= 0 {
        wrong("handSize", "must be positive".to_owned());
    } else if hand > queues {
        wrong("handSize", format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > f64::from(HASH_BITS) {
        let words = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {HASH_BITS}"
        );
        wrong("handSize", words);
    }
}

/// The number of bits of randomness that a hand from a deck needs.
fn entropy_bits(deck: i64, hand: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "sizes are at most ten millions")]
    let bits: f64 = (0..hand.min(64)).map(|dealt| ((deck - dealt).max(1) as f64).log2()).sum();
    bits.ceil()
}

/// Validates the status of a flow schema or priority level.
pub(super) fn validate_status(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let object = Field::root(object);
    let status = object.get("status");
    let mut seen = BTreeSet::new();
    for condition in status.items("conditions") {
        let kind = condition.get("type");
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        required(&kind, "", &mut errors);
    }
    errors
}
