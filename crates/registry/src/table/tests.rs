use proptest::prelude::*;

use super::*;

fn printed(row: &Row, now: UnixSeconds) -> String {
    let (printed, mut out) = (Printed::of(row), Vec::new());
    write_at(&printed.json, &printed.ages, now, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_row_shows_ages_at_the_time_of_the_request() {
    let restarts = Cell::Since { before: "3 (".into(), time: 40, after: " ago)".into() };
    let cells = vec!["a".into(), restarts, Cell::since(0), Cell::from(3_i64)];
    let condition = [("type", "Completed"), ("message", ""), ("status", "True"), ("other", "x")];
    let row = Row { cells, conditions: vec![condition.into()] };
    let end = r#"],"conditions":[{"type":"Completed","status":"True","message":""}]"#;
    for (now, cells) in [
        (100, r#""a","3 (60s ago)","100s",3"#),
        (7_240, r#""a","3 (120m ago)","120m",3"#),
        (10, r#""a","3 (\u003cinvalid\u003e ago)","10s",3"#),
    ] {
        assert_eq!(printed(&row, now), format!("{{\"cells\":[{cells}{end}"));
    }
}

fn any_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        any::<String>().prop_map(Cell::from),
        any::<i64>().prop_map(Cell::from),
        (any::<String>(), any::<i64>(), any::<String>()).prop_map(|(before, time, after)| {
            Cell::Since { before: before.into(), time, after: after.into() }
        }),
    ]
}

proptest! {
    #[test]
    fn a_printed_row_has_the_values_of_its_cells(
        cells in proptest::collection::vec(any_cell(), 0..6),
        now in any::<i64>(),
    ) {
        let row = Row { cells, conditions: Vec::new() };
        let cells: Vec<Value> = row.cells.iter().map(|cell| cell.at(now)).collect();
        let expected = format!("{{\"cells\":{}", json::to_string(&Value::Array(cells)));
        prop_assert_eq!(printed(&row, now), expected);
    }
}
