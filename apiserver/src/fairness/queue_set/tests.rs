//! Arrivals, turns and ends, with the time in hand; and a small simulation of noisy and quiet flows.

use super::*;

const QUEUING: Queuing = Queuing {
    queues: 64,
    hand: 6,
    length_max: 50,
};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn set(limit: u32) -> QueueSet<&'static str> {
    QueueSet::new(Discipline::Queue(QUEUING), limit, ms(0))
}

fn running(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Running(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn waiting(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Waiting(ticket, _) => ticket,
        other => panic!("{other:?}"),
    }
}

fn names(set: &mut QueueSet<&'static str>) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some(ticket) = set.next_dispatched() {
        names.push(set.request_mut(ticket).unwrap().payload);
    }
    names
}

#[test]
fn an_idle_set_lets_through_and_keeps_no_queue() {
    let mut set = set(2);
    let first = running(set.arrive(ms(0), Width::ONE, 1, "a"));
    let second = running(set.arrive(ms(0), Width::ONE, 2, "b"));
    assert_eq!((set.running(), set.seats_in_use()), (2, 2));
    assert_eq!(set.finish(ms(5), first), None);
    assert_eq!(set.finish(ms(5), second), None);
    assert!(set.is_idle());
    assert_eq!(set.queues().count(), 0);
    assert_eq!(set.totals().dispatched, 2);
    assert!(names(&mut set).is_empty());
}

#[test]
fn a_full_level_makes_wait_in_order() {
    let mut set = set(1);
    let first = running(set.arrive(ms(0), Width::ONE, 1, "a"));
    waiting(set.arrive(ms(1), Width::ONE, 1, "b"));
    waiting(set.arrive(ms(2), Width::ONE, 1, "c"));
    assert_eq!((set.waiting(), set.running()), (2, 1));
    set.finish(ms(10), first);
    assert_eq!(names(&mut set).len(), 1);
    assert_eq!((set.waiting(), set.running()), (1, 1));
}

#[test]
fn a_full_queue_refuses_while_others_take() {
    let queuing = Queuing {
        queues: 8,
        hand: 1,
        length_max: 2,
    };
    let mut set = QueueSet::new(Discipline::Queue(queuing), 1, ms(0));
    running(set.arrive(ms(0), Width::ONE, 3, "a"));
    waiting(set.arrive(ms(0), Width::ONE, 3, "b"));
    waiting(set.arrive(ms(0), Width::ONE, 3, "c"));
    assert_eq!(set.arrive(ms(0), Width::ONE, 3, "d"), Arrival::QueueFull);
    waiting(set.arrive(ms(0), Width::ONE, 4, "e"));
    assert_eq!(set.totals().rejected, 1);
}

#[test]
fn a_level_without_queues_refuses_at_its_limit_and_an_exempt_one_never() {
    let mut reject = QueueSet::new(Discipline::Reject, 1, ms(0));
    let first = running(reject.arrive(ms(0), Width::ONE, 0, "a"));
    assert_eq!(reject.arrive(ms(0), Width::ONE, 0, "b"), Arrival::NoSeat);
    reject.finish(ms(1), first);
    running(reject.arrive(ms(1), Width::ONE, 0, "c"));
    let mut exempt = QueueSet::new(Discipline::Exempt, 0, ms(0));
    for _ in 0..100 {
        running(exempt.arrive(ms(0), Width::ONE, 0, "x"));
    }
    assert_eq!(exempt.seats_in_use(), 100);
}

#[test]
fn one_that_is_gone_leaves_its_queue() {
    let mut set = set(1);
    let first = running(set.arrive(ms(0), Width::ONE, 1, "a"));
    let second = waiting(set.arrive(ms(0), Width::ONE, 1, "b"));
    waiting(set.arrive(ms(0), Width::ONE, 1, "c"));
    assert!(set.abandon(ms(1), second, true));
    assert!(!set.abandon(ms(1), second, true));
    assert!(!set.abandon(ms(1), first, false));
    set.finish(ms(2), first);
    assert_eq!(names(&mut set), ["c"]);
    assert_eq!(set.totals().timed_out, 1);
}

#[test]
fn a_request_wider_than_the_level_runs_alone() {
    let wide = Width {
        initial: 5,
        ..Width::ONE
    };
    let mut set = set(3);
    let first = running(set.arrive(ms(0), Width::ONE, 1, "narrow"));
    let second = waiting(set.arrive(ms(0), wide, 2, "wide"));
    // A short one that would end before it may pass it, while there is room.
    let third = running(set.arrive(ms(1), Width::ONE, 3, "late"));
    set.finish(ms(30), first);
    assert!(names(&mut set).is_empty());
    set.finish(ms(31), third);
    assert_eq!(names(&mut set), ["wide"]);
    waiting(set.arrive(ms(32), Width::ONE, 3, "later"));
    set.finish(ms(40), second);
    assert_eq!(names(&mut set), ["later"]);
}

#[test]
fn seats_stay_taken_for_what_watchers_are_told() {
    let width = Width {
        initial: 1,
        lasting: 4,
        lingering: ms(5),
    };
    let mut set = set(2);
    let first = running(set.arrive(ms(0), width, 1, "write"));
    // Narrowed to the level: twice as long on half the seats.
    assert_eq!(set.seats_in_use(), 2);
    waiting(set.arrive(ms(1), Width::ONE, 2, "next"));
    assert_eq!(set.finish(ms(3), first), Some(ms(10)));
    assert!(names(&mut set).is_empty());
    set.release(ms(13), first);
    assert_eq!(names(&mut set), ["next"]);
}

#[test]
fn a_higher_limit_lets_through_and_a_lower_one_takes_nothing_away() {
    let mut set = set(1);
    running(set.arrive(ms(0), Width::ONE, 1, "a"));
    waiting(set.arrive(ms(0), Width::ONE, 1, "b"));
    waiting(set.arrive(ms(0), Width::ONE, 1, "c"));
    set.set_limit(ms(1), 3);
    assert_eq!(names(&mut set).len(), 2);
    set.set_limit(ms(2), 1);
    assert_eq!(set.seats_in_use(), 3);
    waiting(set.arrive(ms(3), Width::ONE, 1, "d"));
}

/// Flows by name, each with its hash, how many requests it has open at once, and how long one
/// takes. Runs for ten seconds of virtual life and gives how many of each were done.
fn simulate(limit: u32, flows: &[(&'static str, u64, usize, u64)]) -> BTreeMap<&'static str, u64> {
    let mut set = QueueSet::new(Discipline::Queue(QUEUING), limit, ms(0));
    let mut done: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ends: BTreeMap<(u64, Ticket), &'static str> = BTreeMap::new();
    let mut open: BTreeMap<&'static str, usize> = BTreeMap::new();
    for now in 0..10_000 {
        let due: Vec<_> = ends
            .range(..=(now, Ticket(u64::MAX)))
            .map(|(key, flow)| (*key, *flow))
            .collect();
        for ((end, ticket), flow) in due {
            ends.remove(&(end, ticket));
            set.finish(ms(now), ticket);
            *done.entry(flow).or_default() += 1;
            *open.entry(flow).or_default() -= 1;
        }
        for (flow, hash, width, took) in flows {
            while *open.entry(flow).or_default() < *width {
                match set.arrive(ms(now), Width::ONE, *hash, *flow) {
                    Arrival::Running(ticket) => drop(ends.insert((now + took, ticket), flow)),
                    Arrival::Waiting(..) => {}
                    _ => break,
                }
                *open.entry(flow).or_default() += 1;
            }
        }
        while let Some(ticket) = set.next_dispatched() {
            let flow = set.request_mut(ticket).unwrap().payload;
            let took = flows.iter().find(|one| one.0 == flow).unwrap().3;
            ends.insert((now + took, ticket), flow);
        }
    }
    done
}

#[test]
fn a_flood_does_not_hold_up_a_quiet_flow() {
    use crate::fairness::deal::hash;
    // 1,000 seats' worth of noise on 10 seats, and a lease that is renewed as fast as it can be.
    let done = simulate(
        10,
        &[
            ("noisy", hash("s", "noisy"), 250, 20),
            ("quiet", hash("s", "quiet"), 1, 4),
        ],
    );
    // Each of its requests waits for the next seat that is free, 20 ms at most, and no longer.
    assert!(done["quiet"] > 450, "{done:?}");
    // And what it leaves is not lost: 10 seats for 10 s are 5,000 requests of 20 ms.
    assert!(done["noisy"] > 4000, "{done:?}");
}

#[test]
fn two_that_want_all_get_the_same() {
    let one = |hash: u64, name: &'static str| (name, hash, 40, 10);
    let done = simulate(8, &[one(11, "a"), one(5_000_011, "b")]);
    let (a, b) = (done["a"] as f64, done["b"] as f64);
    assert!((a - b).abs() / (a + b) < 0.1, "{done:?}");
}
