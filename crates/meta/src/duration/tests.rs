use proptest::prelude::*;

use super::{format, human, parse};
use crate::tests;

#[test]
fn durations_match_go() {
    let rows = include_str!("../../testdata/durations.jsonl");
    tests::check(rows, |text| parse(text).map(format));
}

#[test]
fn ages_have_at_most_two_units() {
    for (seconds, age) in [
        (-2, "<invalid>"),
        (-1, "0s"), // -1.999999999s
        (0, "0s"),  // 0.999s
        (70, "70s"),
        (119, "119s"), // 119.999s
        (120, "2m"),   // 2m
        (121, "2m1s"), // 2m1s
        (190, "3m10s"),
        (599, "9m59s"),        // 9m59.999s
        (601, "10m"),          // 10m1s
        (4200, "70m"),         // 70m
        (10799, "179m"),       // 179m59.999s
        (10800, "3h"),         // 3h
        (10860, "3h1m"),       // 3h1m
        (28799, "7h59m"),      // 7h59m59.999s
        (32340, "8h"),         // 8h59m
        (169200, "47h"),       // 47h
        (172800, "2d"),        // 48h
        (176400, "2d1h"),      // 49h
        (691199, "7d23h"),     // 191h59m59s
        (691200, "8d"),        // 192h
        (698400, "8d"),        // 194h
        (31708800, "367d"),    // 367d
        (63071940, "729d"),    // 729d23h59m
        (63072000, "2y"),      // 730d
        (63158340, "2y"),      // 730d23h59m
        (63158400, "2y1d"),    // 731d
        (94608000, "3y"),      // 1095d
        (252287940, "7y364d"), // 2919d23h59m
        (252288000, "8y"),     // 2920d
        (283737600, "8y"),     // 3284d
        (283824000, "9y"),     // 3285d
    ] {
        assert_eq!(human(seconds), age, "{seconds} s");
    }
}

proptest! {
    #[test]
    fn formatted_text_parses_back(nanos in any::<i64>()) {
        prop_assert_eq!(parse(&format(nanos)), Ok(nanos));
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[-+0-9.hmsuµn]{0,40}", seconds in any::<i64>()) {
        let _ = (parse(&text), human(seconds));
    }
}
