//! Problems that come, pass and stay.

use super::{Problem, Telling};
use crate::network::subnet::Subnet;

/// Whose problems are told of.
fn news(telling: &mut Telling, problems: &[(&str, bool)]) -> Vec<String> {
    let network = Subnet::parse("10.42.1.0/24").unwrap();
    let problems = problems.iter().map(|(node, is_early)| {
        let node = (*node).to_owned();
        if *is_early {
            Problem::NoKey { node, network }
        } else {
            Problem::NoAddress { node, network }
        }
    });
    let news = telling.news(problems.collect()).into_iter();
    let nodes = news.map(|problem| match problem {
        Problem::NoKey { node, .. } | Problem::NoAddress { node, .. } => node,
        other => panic!("{other}"),
    });
    nodes.collect()
}

#[test]
fn each_is_told_once_until_it_is_gone() {
    let mut telling = Telling::default();
    let (a, b) = (("a", false), ("b", false));
    assert_eq!(news(&mut telling, &[a]), ["a"]);
    assert_eq!(news(&mut telling, &[a, b]), ["b"]);
    assert_eq!(news(&mut telling, &[a]), [""; 0]);
    assert_eq!(news(&mut telling, &[]), [""; 0]);
    assert!(!telling.waits());
    assert_eq!(news(&mut telling, &[a]), ["a"]);
}

#[test]
fn a_node_that_has_just_come_has_its_key_a_moment_later() {
    let mut telling = Telling::default();
    let (new, old) = (("new", true), ("old", true));
    assert_eq!(news(&mut telling, &[new]), [""; 0]);
    assert!(telling.waits());
    telling.tick();
    // Others change meanwhile, and it is still without.
    assert_eq!(news(&mut telling, &[new]), [""; 0]);
    assert_eq!(news(&mut telling, &[]), [""; 0]);
    assert!(!telling.waits());
    // One that has none at all, beside one that comes later.
    assert_eq!(news(&mut telling, &[old]), [""; 0]);
    telling.tick();
    assert_eq!(news(&mut telling, &[old, new]), [""; 0]);
    telling.tick();
    assert_eq!(news(&mut telling, &[old, new]), ["old"]);
    assert_eq!(news(&mut telling, &[old, new]), [""; 0]);
    assert!(telling.waits());
    assert_eq!(news(&mut telling, &[old]), [""; 0]);
    assert!(!telling.waits());
}
