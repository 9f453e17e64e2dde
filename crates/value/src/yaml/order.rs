//! The order of keys in written YAML: digits in keys are compared as numbers, letters come last.

use std::cmp::Ordering;

/// Sorts by go-yaml's order of keys.
///
/// go-yaml's order is not transitive (`111` < `1a` < `2` < `111`). The standard library's sorts may
/// panic on such an order, so this function is a merge sort of its own.
pub(super) fn sort<T>(members: &mut Vec<T>, key: impl Fn(&T) -> &str) {
    let is_simple = |key: &str| key.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_digit());
    if members.iter().all(|member| is_simple(key(member))) {
        // For such keys the order is total.
        return members.sort_by(|a, b| compare_simple(key(a), key(b)));
    }
    let mut width = 1;
    while width < members.len() {
        let mut merged = Vec::with_capacity(members.len());
        let mut rest = std::mem::take(members).into_iter().peekable();
        while rest.peek().is_some() {
            let left: Vec<T> = rest.by_ref().take(width).collect();
            let right: Vec<T> = rest.by_ref().take(width).collect();
            merge(left, right, &mut merged, &key);
        }
        *members = merged;
        width *= 2;
    }
}

fn merge<T>(left: Vec<T>, right: Vec<T>, merged: &mut Vec<T>, key: &impl Fn(&T) -> &str) {
    let mut right = right.into_iter().peekable();
    for item in left {
        while let Some(earlier) = right.next_if(|other| compare(key(other), key(&item)).is_lt()) {
            merged.push(earlier);
        }
        merged.push(item);
    }
    merged.extend(right);
}

/// Compares two ASCII keys without digits.
fn compare_simple(a: &str, b: &str) -> Ordering {
    let differ = a.bytes().zip(b.bytes()).find(|(x, y)| x != y);
    differ.map_or_else(
        || a.len().cmp(&b.len()),
        |(x, y)| (x.is_ascii_alphabetic(), x).cmp(&(y.is_ascii_alphabetic(), y)),
    )
}

/// Compares two keys in go-yaml v2's order.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y);
    let common: usize = common.map(|(x, _)| x.len_utf8()).sum();
    let (rest_a, rest_b) = (&a[common..], &b[common..]);
    let (Some(x), Some(y)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number is significant: 1001 comes after 12.
    let inside_number = (x == '0' || y == '0') && ends_in_number(&a[..common]);
    let (number_a, digits_a) = number(rest_a, inside_number);
    let (number_b, digits_b) = number(rest_b, inside_number);
    number_a.cmp(&number_b).then(digits_a.cmp(&digits_b)).then(x.cmp(&y))
}

/// Whether the text ends in digits that are not all zero.
fn ends_in_number(text: &str) -> bool {
    text.bytes().rev().take_while(u8::is_ascii_digit).any(|digit| digit != b'0')
}

/// Parses the leading number, and counts its digits. With `goes_on`, the value is computed as if a
/// `1` preceded the digits.
fn number(text: &str, goes_on: bool) -> (u64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    let value = digits.clone().fold(u64::from(goes_on), |n, digit| {
        n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    (value, digits.count())
}
