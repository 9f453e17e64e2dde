//! Rules of objects as data, in the order and the words of upstream's validation functions.
//!
//! A row is about the members of one object, and rows nest as the object does, as those of
//! [`crate::defaults`] do. An absent member is checked only by the rows that say so.

use pintle_meta::validation;
use pintle_value::Value;

use crate::{
    checks::NOT_NEGATIVE,
    formats::port_number,
    place::{Errors, Place},
};

/// The rules of one type, in the order of their errors.
pub(crate) type Rules = &'static [Rule];

/// A rule for a text: what is wrong with it.
pub(crate) type Format = fn(&str) -> Vec<String>;

/// One rule of one object.
pub(crate) enum Rule {
    /// The member must be there and may not be an empty text, list or map.
    Required(&'static str),
    /// Likewise, with words about it.
    Needed(&'static str, &'static str),
    /// The number may not be negative.
    NotNegative(&'static str),
    /// The number lies between these, both inclusive.
    Within(&'static str, i64, i64),
    /// The number of a port, which is 0 where there is none.
    Port(&'static str),
    /// The text is one of these, if the member is there.
    OneOf(&'static str, &'static [&'static str]),
    /// The text is one of these, also if nothing is said.
    Supported(&'static str, &'static [&'static str]),
    /// The text must be there, and is one of these.
    Choice(&'static str, &'static [&'static str]),
    /// The text has this format, if it is not empty.
    Formatted(&'static str, Format),
    /// The text has this format, if the member is there, empty or not: what is a pointer upstream.
    Given(&'static str, Format),
    /// The text must be there, and has this format.
    Named(&'static str, Format),
    /// The label selector, if there is one.
    Selector(&'static str),
    /// The labels of a map.
    Labels(&'static str),
    /// The rules of a member, if it is there.
    At(&'static str, Rules),
    /// The rules of each item of a list.
    Each(&'static str, Rules),
    /// What no row can say.
    Do(fn(&Place<'_>, &mut Errors)),
}

/// Checks an object by its rules.
pub(crate) fn check(object: &Place<'_>, rules: Rules, errors: &mut Errors) {
    rules.iter().for_each(|rule| rule.check(object, errors));
}

/// What is wrong with an object by its rules.
pub(crate) fn errors(object: &Value, rules: Rules) -> Errors {
    let mut errors = Errors::new();
    check(&Place::root(object), rules, &mut errors);
    errors
}

impl Rule {
    fn check(&self, object: &Place<'_>, errors: &mut Errors) {
        match *self {
            Self::Required(member) => required(&object.get(member), "", errors),
            Self::Needed(member, words) => required(&object.get(member), words, errors),
            Self::NotNegative(member) => not_negative(&object.get(member), errors),
            Self::Within(member, least, most) => {
                let place = object.get(member);
                if place.int().is_some_and(|number| !(least..=most).contains(&number)) {
                    errors.push(place.invalid(within(least, most)));
                }
            }
            Self::Port(member) => {
                let place = object.get(member);
                let number = place.int().unwrap_or(0);
                let wrong = port_number(number);
                errors.extend(wrong.map(|words| place.invalid_as(number, words)));
            }
            Self::OneOf(member, allowed) => {
                let place = object.get(member);
                if place.is_set() && !allowed.contains(&place.text()) {
                    errors.push(place.not_supported(allowed));
                }
            }
            Self::Supported(member, allowed) => {
                let place = object.get(member);
                if !allowed.contains(&place.text()) {
                    errors.push(place.not_supported(allowed));
                }
            }
            Self::Choice(member, allowed) => choice(&object.get(member), allowed, errors),
            Self::Formatted(member, format) => {
                let place = object.get(member);
                if !place.is_empty() {
                    place.all_invalid(format(place.text()), errors);
                }
            }
            Self::Given(member, format) => {
                if let Some(place) = object.find(member) {
                    place.all_invalid(format(place.text()), errors);
                }
            }
            Self::Named(member, format) => {
                let place = object.get(member);
                required(&place, "", errors);
                if !place.is_empty() {
                    place.all_invalid(format(place.text()), errors);
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
                if let Some(place) = object.find(member) {
                    check(&place, rules, errors);
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
pub(crate) fn required(place: &Place<'_>, words: &str, errors: &mut Errors) {
    if place.is_empty() {
        errors.push(place.required(words));
    }
}

/// The text must be there and one of these.
pub(crate) fn choice(place: &Place<'_>, allowed: &[&str], errors: &mut Errors) {
    if place.is_empty() {
        errors.push(place.required(""));
    } else if !allowed.contains(&place.text()) {
        errors.push(place.not_supported(allowed));
    }
}

/// The number, if there is one, may not be negative.
pub(crate) fn not_negative(place: &Place<'_>, errors: &mut Errors) {
    if place.int().is_some_and(|number| number < 0) {
        errors.push(place.invalid(NOT_NEGATIVE));
    }
}

/// What upstream says of numbers out of their range.
pub(crate) fn within(least: i64, most: i64) -> String {
    format!("must be between {least} and {most}, inclusive")
}
