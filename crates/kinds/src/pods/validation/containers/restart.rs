//! Restart policies of single containers.

use pintle_meta::field::Error;

use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{At, Do, OneOf, Supported},
        Rules, check,
    },
};

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const NEEDED: &str = "must specify restartPolicy when restart rules are used";
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// Checks a container's restart policy and rules.
pub(super) fn check_regular(container: &Field<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    let rules = container.get("restartPolicyRules");
    if policy.is_set() {
        check(container, &[OneOf("restartPolicy", POLICIES)], errors);
    } else if !rules.is_empty() {
        errors.push(policy.required(NEEDED));
    }
    check_rules(container, errors);
}

/// Checks an init container's restart policy and rules. Without a policy, the rules are not
/// checked.
pub(super) fn check_init(container: &Field<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    if policy.is_set() {
        check_regular(container, errors);
    } else if !container.get("restartPolicyRules").is_empty() {
        errors.push(policy.required(NEEDED));
    }
}

fn check_rules(container: &Field<'_>, errors: &mut Errors) {
    let list = container.get("restartPolicyRules");
    let rules = container.items("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(Error::too_many(&list.path(), rules.len(), RULES_MAX));
    }
    rules.for_each(|rule| check(&rule, RULE, errors));
}

const RULE: Rules = &[
    Supported("action", &["Restart", "RestartAllContainers"]),
    Do(|rule, errors| {
        if !rule.has("exitCodes") {
            errors.push(rule.get("exitCodes").required("must be specified"));
        }
    }),
    At(
        "exitCodes",
        &[
            Supported("operator", &["In", "NotIn"]),
            Do(|codes, errors| {
                let values = codes.items("values").len();
                if values > EXIT_CODES_MAX {
                    let path = codes.get("values").path();
                    errors.push(Error::too_many(&path, values, EXIT_CODES_MAX));
                }
            }),
        ],
    ),
];
