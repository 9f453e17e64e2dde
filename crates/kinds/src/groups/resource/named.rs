//! Checks of names in dynamic resource allocation, and of lists that are bounded and have no
//! duplicates.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};
use pintle_value::Value;

use super::super::storage::csi_driver_name;
use crate::field::{Errors, Field};

const POOL_LENGTH_MAX: usize = 253;
const ID_LENGTH_MAX: usize = 32;

pub(super) fn driver(field: &Field<'_>, errors: &mut Errors) {
    csi_driver_name(field, errors);
}

/// Checks a DNS label, which is required.
pub(super) fn label(field: &Field<'_>, errors: &mut Errors) {
    field.all_invalid(names::dns1123_label(field.text()), errors);
}

/// Checks the name of a pool: DNS subdomains with slashes between them.
pub(super) fn pool(field: &Field<'_>, errors: &mut Errors) {
    if field.is_empty() {
        return errors.push(field.required(""));
    }
    if field.text().len() > POOL_LENGTH_MAX {
        errors.push(Error::too_long(&field.path(), POOL_LENGTH_MAX));
    }
    for part in field.text().split('/') {
        if errors.is_full() {
            break;
        }
        field.all_invalid_as(part, names::dns1123_subdomain(part), errors);
    }
}

/// Checks the name of an attribute or capacity: an identifier, with or without a domain.
pub(super) fn qualified(field: &Field<'_>, name: &str, errors: &mut Errors) {
    match name.split_once('/') {
        None => identifier(field, name, errors),
        // Upstream accepts such names.
        Some((_, rest)) if rest.contains('/') => {}
        Some((domain, name)) => {
            if domain.is_empty() {
                errors.push(field.invalid_as("", "the domain must not be empty"));
            } else {
                driver(&field.of(&Value::from(domain)), errors);
            }
            if name.is_empty() {
                errors.push(field.invalid_as("", "the name must not be empty"));
            } else {
                identifier(field, name, errors);
            }
        }
    }
}

/// Checks a qualified name that must have a domain.
pub(super) fn fully_qualified(field: &Field<'_>, errors: &mut Errors) {
    qualified(field, field.text(), errors);
    if !field.text().contains('/') {
        let words = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(field.invalid(words));
    }
}

/// Checks a UUID, which must be in its canonical form.
pub(super) fn uuid(text: &str) -> Vec<String> {
    let is_lower = |byte: u8| !byte.is_ascii_uppercase();
    match uuid_error(text) {
        Some(why) => vec![format!("error validating uid: {why}")],
        None if text.len() == UUID_LENGTH && text.bytes().all(is_lower) => Vec::new(),
        None => vec![
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with \
             lowercase hexadecimal characters"
                .to_owned(),
        ],
    }
}

const UUID_LENGTH: usize = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".len();

/// Returns why the text is none of the forms of a UUID that upstream's library knows: 32 digits,
/// the canonical form, and this as a URN or in brackets.
fn uuid_error(text: &str) -> Option<String> {
    const FORMAT: &str = "invalid UUID format";
    const URN: &str = "urn:uuid:";
    const URN_LENGTH: usize = URN.len() + UUID_LENGTH;
    const BRACKETED_LENGTH: usize = UUID_LENGTH + 2;
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let bytes = text.as_bytes();
    let canonical = match bytes.len() {
        32 => return (!bytes.iter().all(is_digit)).then(|| FORMAT.to_owned()),
        UUID_LENGTH => bytes,
        URN_LENGTH if bytes[..URN.len()].eq_ignore_ascii_case(URN.as_bytes()) => {
            &bytes[URN.len()..]
        }
        URN_LENGTH => {
            let prefix = String::from_utf8_lossy(&bytes[..URN.len()]);
            return Some(format!("invalid urn prefix: {prefix:?}"));
        }
        BRACKETED_LENGTH if (bytes[0], bytes[BRACKETED_LENGTH - 1]) == (b'{', b'}') => {
            &bytes[1..=UUID_LENGTH]
        }
        BRACKETED_LENGTH => return Some("invalid bracketed UUID format".to_owned()),
        length => return Some(format!("invalid UUID length: {length}")),
    };
    let fits = |(i, byte): (usize, &u8)| match i {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => is_digit(byte),
    };
    (!canonical.iter().enumerate().all(fits)).then(|| FORMAT.to_owned())
}

fn identifier(field: &Field<'_>, name: &str, errors: &mut Errors) {
    if name.len() > ID_LENGTH_MAX {
        errors.push(Error::too_long(&field.path(), ID_LENGTH_MAX));
    }
    let mut letters = name.bytes();
    let is_first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let is_rest = |b: u8| is_first(b) || b.is_ascii_digit();
    if !letters.next().is_some_and(is_first) || !letters.all(is_rest) {
        let words = "a valid C identifier must start with alphabetic character or '_', followed by \
                     a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                     'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(field.invalid_as(name, words));
    }
}

/// Checks the length of a list, and each item if the list is not too long.
pub(super) fn each(
    holder: &Field<'_>,
    list: &str,
    count_max: usize,
    errors: &mut Errors,
    item: &mut dyn FnMut(&Field<'_>, &mut Errors),
) {
    let count = holder.items(list).len();
    if count > count_max {
        return errors.push(Error::too_many(&holder.get(list).path(), count, count_max));
    }
    holder.items(list).for_each(|field| item(&field, errors));
}

/// Like `each`, for a list without duplicates; `key` is the member that identifies items, `""` if
/// they are texts.
pub(super) fn each_of_set(
    holder: &Field<'_>,
    list: &str,
    (count_max, key): (usize, &str),
    errors: &mut Errors,
    item: &mut dyn FnMut(&Field<'_>, &mut Errors),
) {
    each(holder, list, count_max, errors, item);
    if holder.items(list).len() <= count_max {
        let mut seen = BTreeSet::new();
        for field in holder.items(list) {
            let key = if key.is_empty() { field.text() } else { field.str(key) };
            if !seen.insert(key.to_owned()) {
                errors.push(Error::duplicate(&field.path(), &key.into()));
            }
        }
    }
}
