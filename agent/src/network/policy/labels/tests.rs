//! What selectors are met by.

use super::*;

fn is(key: &str, is: Is) -> Requirement {
    Requirement {
        key: key.into(),
        is,
    }
}

fn values(all: &[&str]) -> Box<[Box<str>]> {
    all.iter().map(|one| Box::from(*one)).collect()
}

#[test]
fn labels_are_found_by_their_key_alone() {
    let labels = Labels::of([("b", "a"), ("a", ""), ("c", "b")]);
    assert_eq!(labels.get("a"), Some(""));
    assert_eq!(labels.get("b"), Some("a"));
    assert_eq!(labels.get("c"), Some("b"));
    assert_eq!(labels.get(""), None);
    assert_eq!(labels.get("d"), None);
    assert_eq!(Labels::default().get("a"), None);
    assert_eq!(Labels::default().get(""), None);
}

#[test]
fn each_operator_is_met_as_upstream_has_it() {
    let labels = Labels::of([("app", "web"), ("tier", "front")]);
    for (requirement, is_met) in [
        (is("app", Is::OneOf(values(&["db", "web"]))), true),
        (is("app", Is::OneOf(values(&["db"]))), false),
        (is("zone", Is::OneOf(values(&["db"]))), false),
        (is("app", Is::NoneOf(values(&["db"]))), true),
        (is("app", Is::NoneOf(values(&["db", "web"]))), false),
        (is("zone", Is::NoneOf(values(&["db"]))), true),
        (is("app", Is::There), true),
        (is("zone", Is::There), false),
        (is("app", Is::Missing), false),
        (is("zone", Is::Missing), true),
        (is("app", Is::Unknown), false),
    ] {
        let selector = Selector::new([requirement]);
        assert_eq!(selector.has(&labels), is_met, "{selector:?}");
    }
    assert!(Selector::default().has(&labels));
    assert!(Selector::default().has(&Labels::default()));
    let both = Selector::new([is("app", Is::There), is("zone", Is::There)]);
    assert!(!both.has(&labels));
}

#[test]
fn the_order_in_which_it_is_asked_makes_no_difference() {
    let (one, two) = (is("app", Is::There), is("tier", Is::Missing));
    let forth = Selector::new([one.clone(), two.clone()]);
    assert_eq!(forth, Selector::new([two, one.clone(), one]));
}
