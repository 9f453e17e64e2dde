//! Validation rules as data, in the order and with the messages of upstream's validation functions.
//!
//! A row is about the members of one object, and rows nest as the object does, like those of
//! [`crate::defaults`]. Rows ignore an absent member unless their description says otherwise.

use pintle_meta::validation;
use pintle_value::Value;

use crate::{
    checks::NOT_NEGATIVE,
    field::{Errors, Field},
    formats::{port_number, within},
};

/// The rules of one type, in the order of their errors.
pub(crate) type Rules = &'static [Rule];

/// A format of texts: returns the errors of a text.
pub(crate) type Format = fn(&str) -> Vec<String>;

/// One rule of one object.
pub(crate) enum Rule {
    /// The member must be there and may not be an empty text, list or map.
    Required(&'static str),
    /// Like `Required`, with this message.
    Needed(&'static str, &'static str),
    /// The number may not be negative.
    NotNegative(&'static str),
    /// The number lies between these, both inclusive.
    Within(&'static str, i64, i64),
    /// The number of a port; 0 means no port.
    Port(&'static str),
    /// The text is one of these, if the member is present.
    OneOf(&'static str, &'static [&'static str]),
    /// The text is one of these; an absent one counts as empty.
    Supported(&'static str, &'static [&'static str]),
    /// The text must be there, and is one of these.
    Choice(&'static str, &'static [&'static str]),
    /// The text has this format, if it is not empty.
    Formatted(&'static str, Format),
    /// The text has this format, if the member is present, empty or not (a pointer upstream).
    Given(&'static str, Format),
    /// The text must be there, and has this format.
    Named(&'static str, Format),
    /// The label selector, if there is one.
    Selector(&'static str),
    /// The labels of a map.
    Labels(&'static str),
    /// The rules of a member, if it is present.
    At(&'static str, Rules),
    /// The rules of each item of a list.
    Each(&'static str, Rules),
    /// A rule that no row can express.
    Do(fn(&Field<'_>, &mut Errors)),
}

/// Checks an object by its rules.
pub(crate) fn check(object: &Field<'_>, rules: Rules, errors: &mut Errors) {
    rules.iter().for_each(|rule| rule.check(object, errors));
}

/// Returns the errors of an object by its rules.
pub(crate) fn errors(object: &Value, rules: Rules) -> Errors {
    let mut errors = Errors::new();
    check(&Field::root(object), rules, &mut errors);
    errors
}

impl Rule {
    fn check(&self, object: &Field<'_>, errors: &mut Errors) {
        match *self {
            Self::Required(member) => required(&object.get(member), "", errors),
            Self::Needed(member, words) => required(&object.get(member), words, errors),
            Self::NotNegative(member) => not_negative(&object.get(member), errors),
            Self::Within(member, least, most) => {
                let field = object.get(member);
                if field.int().is_some_and(|number| !(least..=most).contains(&number)) {
                    errors.push(field.invalid(within(least, most)));
                }
            }
            Self::Port(member) => {
                let field = object.get(member);
                let number = field.int().unwrap_or(0);
                let wrong = port_number(number);
                errors.extend(wrong.map(|words| field.invalid_as(number, words)));
            }
            Self::OneOf(member, allowed) => {
                let field = object.get(member);
                if field.is_set() && !allowed.contains(&field.text()) {
                    errors.push(field.not_supported(allowed));
                }
            }
            Self::Supported(member, allowed) => {
                let field = object.get(member);
                if !allowed.contains(&field.text()) {
                    errors.push(field.not_supported(allowed));
                }
            }
            Self::Choice(member, allowed) => choice(&object.get(member), allowed, errors),
            Self::Formatted(member, format) => {
                let field = object.get(member);
                if !field.is_empty() {
                    field.all_invalid(format(field.text()), errors);
                }
            }
            Self::Given(member, format) => {
                if let Some(field) = object.find(member) {
                    field.all_invalid(format(field.text()), errors);
                }
            }
            Self::Named(member, format) => {
                let field = object.get(member);
                required(&field, "", errors);
                if !field.is_empty() {
                    field.all_invalid(format(field.text()), errors);
                }
            }
            Self::Selector(member) => {
                let selector = object.get(member);
                errors.extend(validation::label_selector(selector.value(), &selector.path()));
            }
            Self::Labels(member) => {
                let labels = object.get(member);
                errors.extend(validation::labels(labels.value().as_object(), &labels.path()));
            }
            Self::At(member, rules) => {
                if let Some(field) = object.find(member) {
                    check(&field, rules, errors);
                }
            }
            Self::Each(member, rules) => {
                object.items(member).for_each(|item| check(&item, rules, errors));
            }
            Self::Do(function) => function(object, errors),
        }
    }
}

/// The value must be there and may not be an empty text, list or map.
pub(crate) fn required(field: &Field<'_>, words: &str, errors: &mut Errors) {
    if field.is_empty() {
        errors.push(field.required(words));
    }
}

/// The text must be there and one of these.
pub(crate) fn choice(field: &Field<'_>, allowed: &[&str], errors: &mut Errors) {
    if field.is_empty() {
        errors.push(field.required(""));
    } else if !allowed.contains(&field.text()) {
        errors.push(field.not_supported(allowed));
    }
}

/// The number, if there is one, may not be negative.
pub(crate) fn not_negative(field: &Field<'_>, errors: &mut Errors) {
    if field.int().is_some_and(|number| number < 0) {
        errors.push(field.invalid(NOT_NEGATIVE));
    }
}
