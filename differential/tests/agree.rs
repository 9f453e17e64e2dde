//! `EXPRESSIONS` sets the number of expressions (3,000), `SEED` the seed (1).

use pintle_differential::{CelRust, Evaluator, Judge, KNOWN, Maker, Rscel};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn agrees(other: impl Evaluator, extensions: bool) {
    let name = other.name();
    let mut judge = Judge::new(other);
    let mut maker = Maker::new(number("SEED", 1), extensions);
    let count = number("EXPRESSIONS", 3_000);
    for _ in 0..count {
        judge.judge(&maker.make());
    }
    let tally = &judge.tally;
    for (at, met) in &tally.known {
        println!("{name}: {met} times {}", KNOWN[*at].why);
    }
    println!("{name}: {count} expressions, {} alike as a whole or in parts", tally.alike);
    assert!(tally.refused * 50 < count as usize, "{} are not well typed", tally.refused);
    let shown = tally.unknown[..tally.unknown.len().min(number("SHOWN", 60) as usize)].join("\n");
    assert!(tally.unknown.is_empty(), "{} differ:\n{shown}", tally.unknown.len());
}

/// Each known deviation must still occur, so that fixed ones are removed from the list.
fn is_known(other: impl Evaluator) {
    let name = other.name();
    let judge = Judge::new(other);
    for (at, known) in KNOWN.iter().enumerate().filter(|(_, known)| known.of == name) {
        assert_eq!(judge.shown_by(known.example), Some(at), "{name}: {}", known.example);
    }
}

#[test]
fn cel_rust_agrees() {
    is_known(CelRust::default());
    agrees(CelRust::default(), true);
}

#[test]
fn rscel_agrees() {
    is_known(Rscel);
    agrees(Rscel, false);
}
