use super::*;

/// The watches reported: `a` was created at 3, changed at 5, deleted at 7, and created again at 9;
/// `b` was created at 4.
fn history() -> History {
    let rows = [
        (3, "ADDED", "a", "u1", "w1"),
        (4, "ADDED", "b", "u2", "w2"),
        (5, "MODIFIED", "a", "u1", "w3"),
        (7, "DELETED", "a", "u1", "w3"),
        (9, "ADDED", "a", "u3", "w4"),
    ];
    let changes = rows.map(|(revision, kind, name, uid, writer)| Change {
        revision,
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        writer: writer.to_owned(),
    });
    let reported = [("one", changes.clone()), ("other", changes)];
    let reported = reported.map(|(name, changes)| (name.to_owned(), changes.to_vec()));
    let (history, wrong) = History::of(reported.into());
    assert_eq!(wrong, Vec::<String>::new());
    history
}

fn answer(name: &str, newest_before: u64, outcome: Outcome) -> Answer {
    let request = "request".to_owned();
    Answer { request, name: name.to_owned(), newest_before, began: 10, ended: 11, outcome }
}

fn state(revision: u64, writer: &str, uid: &str, is_write: bool) -> Outcome {
    Outcome::State { revision, writer: writer.to_owned(), uid: uid.to_owned(), is_write }
}

fn list(revision: u64, objects: &[(&str, u64)]) -> Outcome {
    let objects = objects.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
    Outcome::List { revision, objects }
}

#[test]
fn responses_that_the_history_explains_are_accepted() {
    let history = history();
    for (name, newest_before, outcome) in [
        ("a", 0, state(3, "w1", "u1", true)),
        ("a", 4, state(3, "w1", "u1", false)),
        ("a", 5, state(5, "w3", "u1", false)),
        ("a", 0, Outcome::Absent),
        ("a", 6, Outcome::Absent),
        ("b", 0, Outcome::Present),
        ("a", 8, Outcome::Present),
        ("a", 0, Outcome::Conflict { expected: 3 }),
        ("a", 0, Outcome::Deleted { uid: "u1".to_owned() }),
        ("", 5, list(6, &[("a", 5), ("b", 4)])),
        ("", 5, list(8, &[("b", 4)])),
    ] {
        let answer = answer(name, newest_before, outcome);
        assert_eq!(history.check(&answer, &|_| false), Ok(()), "{answer:?}");
    }
}

#[test]
fn contradictions_to_the_history_are_reported() {
    let history = history();
    for (name, newest_before, outcome, why) in [
        ("a", 0, state(6, "w9", "u1", true), "no watch reported"),
        ("a", 0, state(5, "w1", "u1", true), "the watches reported"),
        ("a", 5, state(3, "w1", "u1", false), "stale"),
        ("b", 4, Outcome::Absent, "always there"),
        ("c", 0, Outcome::Present, "never there"),
        ("b", 0, Outcome::Conflict { expected: 4 }, "nobody else wrote"),
        ("b", 0, Outcome::Deleted { uid: "u2".to_owned() }, "no watch reported"),
        ("", 7, list(6, &[("a", 5), ("b", 4)]), "stale"),
        ("", 0, list(6, &[("a", 3), ("b", 4)]), "at that revision"),
    ] {
        let answer = answer(name, newest_before, outcome);
        let error = history.check(&answer, &|_| false).expect_err("it does not fit");
        assert!(error.contains(why), "{answer:?}: {error}");
    }
    let read = answer("a", 5, state(5, "w3", "u1", false));
    let error = history.check(&read, &|uid| uid == "u1").expect_err("it was deleted before");
    assert!(error.contains("deleted"), "{error}");
}

#[test]
fn every_change_has_one_writer_that_got_a_success() {
    let history = history();
    let acknowledged = |revision, writer| answer("a", 0, state(revision, writer, "u", true));
    let unknown = answer("a", 0, Outcome::Unknown { writer: "w4".to_owned() });
    let mut all =
        vec![acknowledged(3, "w1"), acknowledged(4, "w2"), acknowledged(5, "w3"), unknown];
    assert_eq!(history.unexplained(&all), Vec::<String>::new());
    all.remove(2);
    let wrong = history.unexplained(&all);
    assert!(wrong.len() == 1 && wrong[0].contains("w3"), "{wrong:?}");
}

#[test]
fn watches_with_different_histories_are_reported() {
    let whole = history().changes;
    for (other, why) in
        [(whole[..4].to_vec(), "None"), ([&whole[..2], &whole[3..]].concat(), "DELETED")]
    {
        let reported = vec![("one".to_owned(), whole.clone()), ("other".to_owned(), other)];
        let (_, wrong) = History::of(reported);
        assert!(wrong.len() == 1 && wrong[0].contains(why), "{wrong:?}");
    }
    let mut twice = whole.clone();
    twice.insert(2, whole[1].clone());
    let (_, wrong) = History::of(vec![("one".to_owned(), twice)]);
    assert_eq!(wrong.len(), 1, "a change that is reported twice is out of order");
}
