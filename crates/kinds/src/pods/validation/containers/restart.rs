//! Restart policies of single containers.

use pintle_meta::field::Error;

use crate::{
    place::{Errors, Place},
    rules::{
        Rule::{At, Choice, Do, OneOf},
        Rules, check,
    },
};

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// Checks what a container says of its restarts.
pub(super) fn check_regular(container: &Place<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    let rules = container.get("restartPolicyRules");
    if policy.is_set() {
        check(container, &[OneOf("restartPolicy", POLICIES)], errors);
    } else if !rules.is_empty() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
    check_rules(container, errors);
}

/// Likewise of an init container: a sidecar is one that always restarts.
pub(super) fn check_init(container: &Place<'_>, errors: &mut Errors) {
    check_regular(container, errors);
}

fn check_rules(container: &Place<'_>, errors: &mut Errors) {
    let list = container.get("restartPolicyRules");
    let rules = container.items("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(Error::too_many(&list.path(), rules.len(), RULES_MAX));
    }
    rules.for_each(|rule| check(&rule, RULE, errors));
}

const RULE: Rules = &[
    Choice("action", &["Restart", "RestartAllContainers"]),
    Do(|rule, errors| {
        if !rule.has("exitCodes") {
            errors.push(rule.get("exitCodes").required("must be specified"));
        }
    }),
    At(
        "exitCodes",
        &[
            Choice("operator", &["In", "NotIn"]),
            Do(|codes, errors| {
                let values = codes.items("values").len();
                let path = codes.get("values").path();
                if values == 0 {
                    errors.push(Error::required(&path, "must be specified"));
                } else if values > EXIT_CODES_MAX {
                    errors.push(Error::too_many(&path, values, EXIT_CODES_MAX));
                }
            }),
        ],
    ),
];
