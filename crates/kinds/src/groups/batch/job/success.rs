//! The success policy of an indexed job: when the job has succeeded although not all of its indexes
//! have.

use pintle_meta::field::Error;

use super::indexes;
use crate::{
    field::{Errors, Field},
    rules::not_negative,
};

const RULES_MAX: usize = 20;
const INDEXES_LENGTH_MAX: usize = 64 * 1024;

/// Checks `successPolicy`.
pub(super) fn check_policy(spec: &Field<'_>, errors: &mut Errors) {
    let Some(policy) = spec.find("successPolicy") else { return };
    if !super::is_indexed(spec) {
        errors.push(policy.invalid("requires indexed completion mode"));
        return;
    }
    let (list, rules) = (policy.get("rules"), policy.items("rules"));
    if rules.len() == 0 {
        let words = "at least one rules must be specified when the successPolicy is specified";
        errors.push(list.required(words));
    }
    if rules.len() > RULES_MAX {
        errors.push(Error::too_many(&list.path(), rules.len(), RULES_MAX));
    }
    let completions = spec.get("completions").int().unwrap_or(0);
    rules.for_each(|rule| check_rule(&rule, completions, errors));
}

fn check_rule(rule: &Field<'_>, completions: i64, errors: &mut Errors) {
    let (count, listed) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
    if !count.is_set() && !listed.is_set() {
        let words = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(rule.required(words));
    }
    let mut total = 0;
    if listed.is_set() {
        if listed.text().len() > INDEXES_LENGTH_MAX {
            errors.push(Error::too_long(&listed.path(), INDEXES_LENGTH_MAX));
        }
        match indexes::count(listed.text(), completions) {
            Ok(count) => total = count,
            Err(why) => {
                errors.push(listed.invalid(format!("error parsing succeededIndexes: {why}")));
            }
        }
    }
    let Some(number) = count.int() else { return };
    not_negative(&count, errors);
    let mut check_most = |most: i64, of: &str| {
        if number > most {
            errors.push(count.invalid(format!("must be less than or equal to {most} ({of})")));
        }
    };
    check_most(completions, "the number of specified completions");
    if listed.is_set() {
        check_most(total, "the number of indexes in the specified succeededIndexes field");
    }
}
