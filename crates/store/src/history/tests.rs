use super::*;

/// Returns the floors that `add` returns, each with the newest revision then. Each of `writes` is a
/// number of changes and the bytes of each.
fn floors(bytes_max: u64, writes: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut history = History::new(bytes_max);
    let mut newest = 0;
    let mut floors = Vec::new();
    for (times, bytes) in writes {
        for _ in 0..*times {
            newest += 1;
            let floor = history.add(Revision(newest), *bytes);
            floors.extend(floor.map(|floor| (newest, floor.0)));
        }
    }
    floors
}

#[test]
fn the_oldest_part_is_dropped_when_the_bound_is_exceeded() {
    // A part has 11 bytes, because a part ends when it has more than a sixteenth of 160.
    assert_eq!(floors(160, &[(160, 1)]), []);
    assert_eq!(floors(160, &[(183, 1)]), [(161, 11), (172, 22), (183, 33)]);
    // A change as large as the bound can replace all others.
    assert_eq!(floors(160, &[(99, 1), (1, 160)]), [(100, 99)]);
    assert_eq!(floors(160, &[(99, 1), (1, 161)]), [(100, 100)]);
    assert_eq!(floors(160, &[(1, u64::MAX), (1, u64::MAX)]), [(1, 1), (2, 2)]);
    assert_eq!(floors(0, &[(1, 0), (2, 1)]), [(2, 2), (3, 3)]);
    assert_eq!(floors(u64::MAX, &[(1000, 1 << 50)]), []);
}

/// The remaining history never exceeds the bound, and it comes close to it.
#[test]
fn the_remaining_history_is_close_to_the_bound() {
    let mut history = History::new(10_000);
    let (mut sizes, mut floor) = (vec![0u64], 0);
    for revision in 1..5_000u64 {
        let bytes = revision * 7919 % 300;
        sizes.push(bytes);
        if let Some(raised) = history.add(Revision(revision), bytes) {
            assert!(raised.0 > floor && raised.0 <= revision);
            floor = raised.0;
        }
        let left: u64 = sizes[usize::try_from(floor).unwrap() + 1..].iter().sum();
        assert!(left <= 10_000, "{left} at {revision}");
        assert!(floor == 0 || left > 10_000 - 10_000 / PARTS - 2 * 300, "{left} at {revision}");
    }
}
