//! From objects to levels, and seats that move between them.

use super::*;
use crate::fairness::queue_set::{Arrival, Width};
use http::Method;
use serde_json::Value;

fn spec(name: &str, shares: u32, lendable: u32) -> LevelSpec {
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": { "name": name, "uid": format!("uid-{name}") },
        "spec": { "type": "Limited", "limited": {
            "nominalConcurrencyShares": shares, "lendablePercent": lendable,
            "limitResponse": { "type": "Queue", "queuing": {
                "queues": 16, "handSize": 4, "queueLengthLimit": 5,
            } },
        } },
    });
    LevelSpec::of(&Object::from_value(object).unwrap()).unwrap()
}

fn schema(name: &str, precedence: i64, level: &str, user: &str) -> FlowSchema {
    let object: Value = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": name },
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": { "name": level },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": user } }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            }],
        },
    });
    FlowSchema::of(&Object::from_value(object).unwrap())
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn placed(state: &State, user: &User) -> (String, String) {
    let info = RequestInfo::parse(&Method::GET, &"/version".parse().unwrap());
    let route = state.classify(user, &info);
    (route.schema.name.to_string(), route.level.name.to_string())
}

fn on(schema: &str, level: &str) -> (String, String) {
    (schema.to_owned(), level.to_owned())
}

fn limit(state: &State, level: &str) -> u32 {
    state.levels[level].inside.lock().set.limit()
}

fn arrive(state: &State, level: &str, now: Duration) -> Arrival {
    let payload = Payload {
        waker: None,
        schema: "s".into(),
        user: Arc::new(User::anonymous()),
        info: Arc::default(),
        flow_is_user: None,
    };
    let level = &state.levels[level];
    level.inside.lock().set.arrive(now, Width::ONE, 7, payload)
}

#[test]
fn before_anything_is_read_all_have_a_place() {
    let state = State::initial(10, at(0));
    assert_eq!(
        placed(&state, &User::anonymous()),
        on("catch-all", "catch-all")
    );
    let mut admin = User::named("admin");
    admin.groups.push("system:masters".to_owned());
    assert_eq!(placed(&state, &admin), on("exempt", "exempt"));
    assert_eq!(limit(&state, "catch-all"), 10);
}

#[test]
fn the_lowest_precedence_wins_and_then_the_name() {
    let state = State::initial(100, at(0)).next(
        vec![spec("a", 10, 0), spec("b", 10, 0)],
        vec![
            schema("z", 500, "a", "*"),
            schema("y", 500, "b", "*"),
            schema("x", 900, "a", "*"),
            schema("jane", 100, "a", "jane"),
            schema("lost", 2, "missing", "*"),
        ],
        100,
        at(0),
    );
    assert_eq!(placed(&state, &User::named("jane")), on("jane", "a"));
    assert_eq!(placed(&state, &User::named("joe")), on("y", "b"));
    // 10, 10 and the 5 shares of catch-all.
    assert_eq!((limit(&state, "a"), limit(&state, "catch-all")), (40, 20));
}

#[test]
fn a_level_without_its_object_stays_until_it_is_idle() {
    let now = at(0);
    let first = State::initial(40, now).next(vec![spec("a", 35, 0)], Vec::new(), 40, now);
    let Arrival::Running(ticket) = arrive(&first, "a", now) else {
        panic!("there were seats");
    };
    let second = first.next(Vec::new(), vec![schema("s", 5, "a", "*")], 40, now);
    assert!(second.levels["a"].inside.lock().is_quiescing);
    // Nobody new is sent there.
    assert_eq!(placed(&second, &User::named("jane")).1, "catch-all");
    second.levels["a"].inside.lock().set.finish(now, ticket);
    let third = second.next(Vec::new(), Vec::new(), 40, now);
    assert!(!third.levels.contains_key("a"));
    assert_eq!(limit(&third, "catch-all"), 40);
}

#[test]
fn an_idle_level_lends_and_gets_back_what_it_needs() {
    let specs = || {
        vec![
            spec("busy", 10, 0),
            spec("idle", 10, 50),
            spec("own", 10, 0),
        ]
    };
    let state = State::initial(35, at(0)).next(specs(), Vec::new(), 35, at(0));
    assert!(limit(&state, "busy") >= 10 && limit(&state, "idle") >= 5);
    for _ in 0..14 {
        arrive(&state, "busy", at(0));
    }
    state.lend(at(10));
    let lent = (
        limit(&state, "busy"),
        limit(&state, "idle"),
        limit(&state, "own"),
    );
    assert!(
        lent.0 > 10 && lent.1 < 10 && lent.1 >= 5 && lent.2 == 10,
        "{lent:?}"
    );
    // The one that lent becomes busy itself: it has its own again in the next period.
    for _ in 0..10 {
        arrive(&state, "idle", at(10));
    }
    state.lend(at(20));
    assert_eq!(limit(&state, "idle"), 10);
    assert_eq!(limit(&state, "busy"), 10);
}

#[test]
fn a_level_that_changes_keeps_its_requests() {
    let now = at(0);
    let first = State::initial(15, now).next(vec![spec("a", 10, 0)], Vec::new(), 15, now);
    for _ in 0..12 {
        arrive(&first, "a", now);
    }
    assert_eq!(first.levels["a"].inside.lock().set.waiting(), 2);
    let mut wider = spec("a", 10, 0);
    wider.shares = 40;
    let second = first.next(vec![wider], Vec::new(), 15, now);
    let inside = second.levels["a"].inside.lock();
    assert_eq!((inside.set.waiting(), inside.set.running()), (0, 12));
}
