//! Lists replace what was known.

use super::*;
use crate::network::policy::state::State;
use coracle_api::policy_feed::Pod;
use serde_json::json;

fn policy(name: &str) -> Told {
    Told::Policy {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        spec: Some(json!({ "podSelector": {} })),
    }
}

fn pod(name: &str, address: &str) -> Told {
    Told::Pod {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        pod: Some(Pod {
            addresses: vec![address.parse().unwrap()],
            ..Pod::default()
        }),
    }
}

fn namespace(name: &str) -> Told {
    Told::Namespace {
        name: name.to_owned(),
        labels: Some([("kubernetes.io/metadata.name".to_owned(), name.to_owned())].into()),
    }
}

fn hear(state: &mut State, lines: Vec<Told>) -> Vec<Heard> {
    let mut hearing = Hearing::default();
    let lines = lines.into_iter();
    lines.map(|told| hearing.hear(state, told)).collect()
}

fn names(state: &State) -> String {
    let known = &state.known;
    let policies = known.policies.keys().map(|key| key.to_string());
    let namespaces = known.namespaces.keys().map(|name| name.to_string());
    let pods = known.pods.keys().map(|key| key.to_string());
    let all: Vec<_> = policies.chain(namespaces).chain(pods).collect();
    all.join(" ")
}

#[test]
fn a_list_replaces_what_was_known() {
    let mut state = State::default();
    let first = vec![
        Told::Begin,
        policy("a"),
        policy("b"),
        namespace("shop"),
        pod("one", "10.0.0.1"),
        pod("two", "10.0.0.2"),
        Told::Listed,
    ];
    hear(&mut state, first);
    assert_eq!(names(&state), "shop/a shop/b shop shop/one shop/two");
    let second = vec![
        Told::Begin,
        policy("b"),
        pod("two", "10.0.0.2"),
        Told::Listed,
    ];
    let heard = hear(&mut state, second);
    assert_eq!(
        heard,
        [
            Heard::Begun,
            Heard::Rules { is_news: false },
            Heard::Peers { is_news: false },
            Heard::Listed,
        ]
    );
    assert_eq!(names(&state), "shop/b shop/two");
    // The last policy went: nothing else is said any more.
    hear(&mut state, vec![Told::Begin, Told::Listed]);
    assert_eq!(names(&state), "");
}

#[test]
fn changes_are_told_apart_from_what_is_known() {
    let mut state = State::default();
    let list = vec![
        Told::Begin,
        policy("a"),
        pod("one", "10.0.0.1"),
        Told::Listed,
    ];
    hear(&mut state, list);
    let gone = |name: &str| Told::Pod {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        pod: None,
    };
    let not_understood = Told::Policy {
        namespace: "shop".to_owned(),
        name: "a".to_owned(),
        spec: Some(json!({ "ingress": 7 })),
    };
    let heard = hear(
        &mut state,
        vec![
            pod("one", "10.0.0.1"),
            pod("one", "10.0.0.7"),
            gone("other"),
            gone("one"),
            not_understood,
        ],
    );
    let pod = |is_news| Heard::Peers { is_news };
    assert_eq!(
        heard,
        [
            pod(false),
            pod(true),
            pod(false),
            pod(true),
            Heard::Rules { is_news: false },
        ]
    );
    assert_eq!(names(&state), "shop/a");
}
