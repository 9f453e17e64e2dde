use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Format, Quantity, canonical};
use crate::{Error, tests};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn canonical_texts_match_upstream() {
    let rows = include_str!("../../testdata/quantities.jsonl");
    tests::check(rows, |text| canonical(text).map(|text| text.into_owned()));
}

/// Cases where upstream loses or changes amounts and this implementation does not.
#[test]
fn amounts_are_preserved() {
    for (text, written) in [
        ("4000E", Ok("4e21")),                         // upstream: 4
        ("1000000000000000000000", Ok("1e21")),        // upstream: 1
        ("1e99999999999", Err(Error::QuantitySuffix)), // upstream: 10e1215752190
        ("1e-2147483648", Ok("1e-9")),                 // upstream computes for minutes
        ("1e2147483647", Ok("10e2147483646")),
        (
            "12345678901234567890123456789012345600000",
            Ok("12345678901234567890123456789012345600k"),
        ),
        ("0.00000000000000000000000000000000000000000000000001", Ok("1n")),
        ("1234567890123456789012345678901234567", Err(Error::QuantityNumber)),
        ("0.123456789012345678901234567890123456Ki", Err(Error::QuantityNumber)),
    ] {
        assert_eq!(canonical(text), written.map(Into::into), "{text}");
    }
}

#[test]
fn surrounding_space_is_ignored() {
    assert_eq!(canonical(" \t1500m\n"), Ok("1500m".into()));
}

#[test]
fn amounts_compare_across_formats() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, expected) in [
        ("0", "0", Equal),
        ("0", "-0Gi", Equal),
        ("100m", "50m", Greater),
        ("50m", "100m", Less),
        ("10000T", "100Gi", Greater),
        ("1", "1000m", Equal),
        ("1Ki", "1024", Equal),
        ("1Ki", "1e3", Greater),
        ("-1", "1", Less),
        ("-1", "-2", Greater),
        ("1e300", "1e299", Greater),
        ("-1e300", "1n", Less),
        ("-1e300", "-1n", Less),
        ("1n", "1e-200", Equal),
        ("1n", "0", Greater),
    ] {
        assert_eq!(quantity(a).cmp(&quantity(b)), expected, "{a} to {b}");
        assert_eq!(quantity(b).cmp(&quantity(a)), expected.reverse(), "{b} to {a}");
    }
}

#[test]
fn sums_are_exact_and_written_in_the_format_of_the_first() {
    for (a, b, sum) in [
        ("10", "20", "30"),
        ("10k", "1k", "11k"),
        ("100m", "200m", "300m"),
        ("1", "1m", "1001m"),
        ("1Gi", "1Mi", "1025Mi"),
        ("0", "1Gi", "1Gi"),
        ("100m", "0", "100m"),
        ("1Gi", "1500m", "1073741825500m"),
        ("1e3", "1", "1001"),
        ("5", "-5", "0"),
        ("99P", "10n", "99000000000000000000000010n"),
    ] {
        let found = quantity(a) + quantity(b);
        assert_eq!(found.to_string(), sum, "{a} + {b}");
        assert_eq!(found - quantity(b), quantity(a), "{a} + {b} - {b}");
    }
}

#[test]
fn sums_with_too_many_digits_are_rounded_away_from_zero() {
    for (a, b, sum) in [
        ("1e60", "0", "1e60"),
        ("1e60", "1n", "1000000000000000000000000000000000010e24"),
        ("-1e60", "-1Mi", "-1000000000000000000000000000000000010e24"),
        ("1e60", "-1n", "999999999999999999999999999999999990e24"),
        ("1e2147483647", "1e-9", "10000000000000000000000000000000000100e2147483610"),
        ("999999999999999999999999999999999999", "2", "1000000000000000000000000000000000010"),
    ] {
        let found = quantity(a) + quantity(b);
        assert_eq!(found.to_string(), sum, "{a} + {b}");
    }
    assert!((quantity("1e60") - quantity("1e60")).is_zero());
}

#[test]
fn amounts_are_rounded_up_to_thousandths() {
    for (text, rounded) in [
        ("0", "0"),
        ("1", "1"),
        ("128Mi", "128Mi"),
        ("1500m", "1500m"),
        ("1n", "1m"),
        ("-1n", "-1m"),
        ("1500u", "2m"),
        ("1e-9", "1e-3"),
        ("1e60", "1e60"),
        ("0.00001Ki", "11m"),
    ] {
        assert_eq!(quantity(text).round_up(-3).to_string(), rounded, "{text}");
    }
}

#[test]
fn whole_values_are_rounded_away_from_zero() {
    for (text, value, milli) in [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1Ki", 1024, 1_024_000),
        ("9223372036854775807", i64::MAX, i64::MAX),
        ("1e30", i64::MAX, i64::MAX),
        ("-1e30", i64::MIN, i64::MIN),
        ("9Ei", i64::MAX, i64::MAX),
    ] {
        let found = quantity(text);
        assert_eq!((found.value(), found.milli_value()), (value, milli), "{text}");
    }
}

#[test]
fn numbers_become_quantities() {
    for (found, text) in [
        (Quantity::from_int(1024, Format::BinarySi), "1Ki"),
        (Quantity::from_int(1024, Format::DecimalSi), "1024"),
        (Quantity::from_int(1_000_000, Format::DecimalExponent), "1e6"),
        (Quantity::from_milli(1500, Format::DecimalSi), "1500m"),
        (Quantity::from_milli(1_500_000, Format::BinarySi), "1500"),
        (Quantity::from_int(i64::MIN, Format::DecimalSi), "-9223372036854775808"),
        (Quantity::ZERO, "0"),
    ] {
        assert_eq!(found.to_string(), text);
    }
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "[-+]?[0-9.eEinumkKMGTP]{0,50}|\\PC{0,20}") {
        if let Ok(written) = canonical(&text) {
            prop_assert_eq!(quantity(&written), quantity(text.trim()), "{} {}", text, written);
        }
    }

    /// However large or small the amounts are, their sum can be written and read, and is not below
    /// the larger one.
    #[test]
    fn a_sum_is_not_below_its_parts(
        a in "[0-9]{1,36}(e[0-9]{1,2})?", b in "[0-9]{1,36}(e-?[0-9]{1,2})?",
    ) {
        let (a, b) = (quantity(&a), quantity(&b));
        let sum = a + b;
        prop_assert!(sum >= a && sum >= b, "{} + {} = {}", a, b, sum);
        prop_assert_eq!(quantity(&sum.to_string()), sum);
        prop_assert_eq!(b + a, sum);
    }

    /// Compares sums of thousandths with a naive model.
    #[test]
    fn arithmetic_agrees_with_integers(a in any::<i32>(), b in any::<i32>()) {
        let (a, b) = (i64::from(a), i64::from(b));
        let [x, y] = [a, b].map(|n| quantity(&format!("{n}m")));
        prop_assert_eq!((x + y).milli_value(), a + b);
        prop_assert_eq!((x - y).milli_value(), a - b);
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x == y, a == b);
    }

    #[test]
    fn canonical_texts_are_stable(n in any::<i64>(), suffix in "[numkMGTPE]?|[KMGTPE]i|e-?[0-9]") {
        let text = quantity(&format!("{n}{suffix}")).to_string();
        let again = quantity(&text).to_string();
        prop_assert_eq!(again, text);
    }
}
