use proptest::prelude::*;

use super::*;

const QUEUES: Discipline = Discipline::Queue { queues: 8, hand_size: 2, length_max: 3 };

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn request(user: &str, seats: usize) -> Arriving<'_, String> {
    Arriving {
        user,
        flow_hash: crate::flow_hash("schema", user),
        estimate: WorkEstimate::seats(seats),
        known_by: user.to_owned(),
    }
}

/// Finishes one request after the other; returns the users of the dispatched requests.
fn order(set: &mut QueueSet<String>, mut executing: Vec<Ticket>, mut now: u64) -> Vec<String> {
    let mut users = Vec::new();
    while let Some(ticket) = executing.pop() {
        now += 10;
        set.finish(at(now), ticket);
        for next in set.take_dispatched() {
            users.push(set.known_by(next).unwrap().clone());
            executing.insert(0, next);
        }
    }
    users
}

#[test]
fn flows_get_equal_shares_however_many_requests_they_have() {
    let discipline = Discipline::Queue { queues: 64, hand_size: 6, length_max: 50 };
    let mut set = QueueSet::new(discipline, 1, false, at(0));
    let Arrival::Executing(first) = set.arrive(at(0), request("elephant", 1)) else { panic!() };
    for _ in 0..20 {
        assert!(matches!(set.arrive(at(0), request("elephant", 1)), Arrival::Waiting(..)));
    }
    assert!(matches!(set.arrive(at(1), request("mouse", 1)), Arrival::Waiting(_, 1)));
    let users = order(&mut set, vec![first], 1);
    assert_eq!(users.len(), 21);
    let turn = users.iter().position(|user| user == "mouse").unwrap();
    assert!(turn <= 6, "the mouse waited for {turn} requests"); // the elephant has six queues
    assert!(set.is_idle());
    assert_eq!(set.counts().seats_in_use, 0);
}

#[test]
fn a_user_gets_at_most_half_of_the_free_seats() {
    let discipline = Discipline::Queue { queues: 64, hand_size: 6, length_max: 50 };
    let mut set = QueueSet::new(discipline, 16, true, at(0));
    let mut fill = |user: &str| {
        let arrivals = (0..20).map(|_| set.arrive(at(0), request(user, 1)));
        arrivals.filter(|arrival| matches!(arrival, Arrival::Executing(_))).count()
    };
    assert_eq!([fill("a"), fill("b"), fill("c"), fill("d")], [8, 4, 2, 1]);
}

#[test]
fn a_user_who_must_leave_seats_free_neither_blocks_others_nor_fills_a_queue_without_end() {
    let discipline = Discipline::Queue { queues: 1, hand_size: 1, length_max: 3 };
    let mut set = QueueSet::new(discipline, 4, true, at(0));
    let mut arrive = |user| match set.arrive(at(0), request(user, 1)) {
        Arrival::Executing(_) => "executing",
        Arrival::Waiting(..) => "waiting",
        Arrival::Rejected(_) => "rejected",
    };
    let greedy: Vec<_> = (0..4).map(|_| arrive("greedy")).collect();
    assert_eq!(greedy, ["executing", "executing", "waiting", "waiting"]);
    assert_eq!(arrive("modest"), "executing", "two seats were free");
    assert_eq!([arrive("greedy"), arrive("greedy")], ["waiting", "rejected"]);
}

#[test]
fn a_full_queue_rejects_and_so_does_a_level_without_queues() {
    let mut set = QueueSet::new(QUEUES, 1, false, at(0));
    let arrivals: Vec<_> = (0..8).map(|_| set.arrive(at(0), request("a", 1))).collect();
    let rejected = Arrival::Rejected(Rejection::QueueFull);
    assert!(matches!(arrivals[0], Arrival::Executing(_)));
    assert!(arrivals[1..7].iter().all(|arrival| matches!(arrival, Arrival::Waiting(..))));
    assert_eq!(arrivals[7], rejected);
    let mut set = QueueSet::new(Discipline::Reject, 2, false, at(0));
    assert!(matches!(set.arrive(at(0), request("a", 2)), Arrival::Executing(_)));
    assert_eq!(set.arrive(at(0), request("a", 1)), Arrival::Rejected(Rejection::ConcurrencyLimit));
}

#[test]
fn seats_of_a_write_are_released_after_its_events() {
    let estimate = crate::estimate::write(1000, 4);
    let mut set = QueueSet::new(QUEUES, 4, false, at(0));
    let wide = Arriving { estimate, ..request("a", 1) };
    let Arrival::Executing(ticket) = set.arrive(at(0), wide) else { panic!() };
    assert!(matches!(set.arrive(at(0), request("b", 1)), Arrival::Waiting(..)));
    assert_eq!(set.finish(at(3), ticket), Finished::ReleasedAt(at(128)));
    assert_eq!(set.release_due(at(127)), Some(at(128)));
    assert_eq!(set.counts().seats_in_use, 4);
    assert_eq!(set.release_due(at(128)), None);
    assert_eq!(set.take_dispatched().len(), 1);
    assert_eq!((set.counts().seats_in_use, set.counts().waiting), (1, 0));
}

#[test]
fn a_request_wider_than_the_limit_is_executed_alone() {
    let mut set = QueueSet::new(QUEUES, 2, false, at(0));
    let Arrival::Executing(one) = set.arrive(at(0), request("a", 1)) else { panic!() };
    let Arrival::Waiting(wide, _) = set.arrive(at(0), request("a", 5)) else { panic!() };
    assert_eq!(set.counts().without_seats, 1);
    set.finish(at(1), one);
    assert_eq!(set.take_dispatched(), [wide]);
    assert!(matches!(set.arrive(at(1), request("b", 1)), Arrival::Waiting(..)));
}

#[test]
fn surplus_queues_are_removed_when_they_are_empty() {
    let mut set = QueueSet::new(QUEUES, 0, false, at(0));
    let users: Vec<String> = (0..8).map(|user| user.to_string()).collect();
    for user in &users {
        assert!(matches!(set.arrive(at(0), request(user, 1)), Arrival::Waiting(..)));
    }
    let fewer = Discipline::Queue { queues: 1, hand_size: 1, length_max: 3 };
    set.configure(fewer, 8, at(1));
    let dispatched = set.take_dispatched();
    assert_eq!(dispatched.len(), 8);
    dispatched.into_iter().for_each(|ticket| _ = set.finish(at(2), ticket));
    assert_eq!(set.queues().count(), 1);
    set.configure(Discipline::Reject, 8, at(3));
    assert_eq!(set.queues().count(), 0);
}

/// An operation of a test.
#[derive(Clone, Debug)]
enum Step {
    Arrive { user: u8, seats: usize, watches: usize },
    Finish(usize),
    Cancel(usize),
    Pass(u64),
    Limit(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..6, 1_usize..5, 0_usize..60)
            .prop_map(|(user, seats, watches)| Step::Arrive { user, seats, watches }),
        3 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => (1_u64..20).prop_map(Step::Pass),
        1 => (1_usize..9).prop_map(Step::Limit),
    ]
}

proptest! {
    /// The counts agree with a model that keeps tickets in lists, no request waits while seats are
    /// free, and all requests end.
    #[test]
    fn requests_are_counted_and_none_is_lost(
        steps in prop::collection::vec(step(), 1..200), leaves_half: bool,
    ) {
        let mut set = QueueSet::new(QUEUES, 4, leaves_half, at(0));
        let (mut waiting, mut executing): (Vec<Ticket>, Vec<Ticket>) = Default::default();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Arrive { user, seats, watches } => {
                    let user = user.to_string();
                    let estimate = match watches {
                        0..30 => WorkEstimate::seats(seats),
                        _ => crate::estimate::write(watches, 0),
                    };
                    match set.arrive(at(now), Arriving { estimate, ..request(&user, 1) }) {
                        Arrival::Executing(ticket) => executing.push(ticket),
                        Arrival::Waiting(ticket, _) => waiting.push(ticket),
                        Arrival::Rejected(why) => {
                            prop_assert_eq!(why, Rejection::QueueFull);
                        }
                    }
                }
                Step::Finish(which) if !executing.is_empty() => {
                    let which = which % executing.len();
                    set.finish(at(now), executing.swap_remove(which));
                }
                Step::Cancel(which) if !waiting.is_empty() => {
                    let which = which % waiting.len();
                    prop_assert!(set.cancel(at(now), waiting.swap_remove(which)).is_some());
                }
                Step::Pass(milliseconds) => {
                    now += milliseconds;
                    set.release_due(at(now));
                }
                Step::Limit(limit) => set.configure(QUEUES, limit, at(now)),
                Step::Finish(_) | Step::Cancel(_) => {}
            }
            for ticket in set.take_dispatched() {
                waiting.retain(|one| *one != ticket);
                executing.push(ticket);
            }
            let counts = *set.counts();
            prop_assert_eq!((counts.waiting, counts.executing), (waiting.len(), executing.len()));
            let queues: Vec<QueueState> = set.queues().collect();
            prop_assert_eq!(queues.iter().map(|q| q.waiting).sum::<usize>(), counts.waiting);
            prop_assert!(queues.iter().all(|q| q.waiting <= 3), "queues are bounded");
            prop_assert_eq!(queues.iter().map(|q| q.seats_in_use).sum::<usize>(), counts.seats_in_use);
            prop_assert_eq!(queues.iter().map(|q| q.seats_waiting).sum::<usize>(), counts.seats_waiting);
            prop_assert!(counts.waiting == 0 || counts.executing > 0 || counts.seats_in_use > 0);
        }
        while set.counts().waiting > 0 || !executing.is_empty() {
            now += 1000;
            prop_assert!(now < 10_000_000, "requests wait for ever");
            executing.pop().into_iter().for_each(|ticket| _ = set.finish(at(now), ticket));
            set.release_due(at(now + 500));
            executing.extend(set.take_dispatched());
        }
        now += 100_000;
        prop_assert_eq!(set.release_due(at(now)), None);
        prop_assert_eq!(set.counts().seats_in_use, 0);
        prop_assert!(set.held.is_empty() && set.requests.is_empty() && set.active_queues == 0);
        prop_assert_eq!(set.queue_seats, 0);
    }
}
