use proptest::prelude::*;

use super::{SECOND, civil_from_days, days_from_civil, format, format_micro, parse, parse_micro};
use crate::tests;

#[test]
fn times_parse_as_in_go() {
    tests::check(include_str!("../../testdata/times.jsonl"), |text| parse(text).map(format));
}

#[test]
fn micro_times_parse_as_in_go() {
    let rows = include_str!("../../testdata/micro_times.jsonl");
    tests::check(rows, |text| parse_micro(text).map(format_micro));
}

#[test]
fn instants_count_from_1970() {
    for (text, micros) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2006-01-02T15:04:05.1234567Z", 1_136_214_245_123_456),
        ("2006-01-02T15:04:05+02:00", 1_136_207_045_000_000),
        ("0000-01-01T00:00:00Z", -62_167_219_200 * SECOND),
        ("9999-12-31T23:59:59Z", 253_402_300_799 * SECOND),
    ] {
        assert_eq!(parse(text), Ok(micros), "{text}");
    }
}

/// Compares with a naive model: a calendar that is walked day by day.
#[test]
fn dates_agree_with_a_calendar() {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days = days_from_civil(1899, 1, 1);
    for year in 1899..2101 {
        for (month, length) in (1..).zip([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
            for day in 1..=length + i64::from(month == 2 && leap(year)) {
                assert_eq!(days_from_civil(year, month, day), days);
                assert_eq!(civil_from_days(days), (year, month, day));
                days += 1;
            }
        }
    }
    assert_eq!(days_from_civil(1970, 1, 1), 0);
}

proptest! {
    #[test]
    fn formatted_text_parses_back(micros in -62_167_219_200 * SECOND..253_402_300_800 * SECOND) {
        prop_assert_eq!(parse_micro(&format_micro(micros)), Ok(micros));
        prop_assert_eq!(parse(&format_micro(micros)), Ok(micros));
        prop_assert_eq!(parse(&format(micros)), Ok(micros.div_euclid(SECOND) * SECOND));
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[-0-9:.,TZ+é]{0,40}", micros in any::<i64>()) {
        let _ = (parse(&text), parse_micro(&text), format(micros), format_micro(micros));
    }
}
