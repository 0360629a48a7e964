use super::Former;
use crate::runtime::SandboxId;
use std::collections::BTreeSet;

fn ids(text: &str) -> BTreeSet<SandboxId> {
    let names = text.split_whitespace();
    names.map(|name| SandboxId(name.to_owned())).collect()
}

fn id(name: &str) -> SandboxId {
    SandboxId(name.to_owned())
}

#[test]
fn what_is_lost_is_known_by_list_and_by_what_is_alive() {
    let mut former = Former::default();
    former.list(ids("a b c"));
    assert_eq!(former.lost(), ids(""), "nobody said who is alive");
    former.alive(ids("b d"));
    assert_eq!(former.lost(), ids("a c"));
    assert_eq!(former.lost(), ids(""), "once");
}

#[test]
fn a_list_that_comes_late_loses_nothing_of_this_agent() {
    let mut former = Former::default();
    former.alive(ids("b"));
    assert!(!former.is_listed());
    assert_eq!(former.lost(), ids(""));
    // A new one, and one that was there.
    former.met(&id("new"));
    former.met(&id("b"));
    former.list(ids("a b new"));
    assert!(former.is_listed());
    assert_eq!(former.lost(), ids("a"));
}

#[test]
fn plugins_may_run_until_they_were_looked_for() {
    let mut former = Former::default();
    assert!(former.may_run(&id("a")), "nothing is known");
    former.met(&id("a"));
    assert!(!former.may_run(&id("a")));
    former.list(ids("a b"));
    assert!(!former.may_run(&id("a")));
    assert!(former.may_run(&id("b")));
    assert!(!former.may_run(&id("new")));
    former.met(&id("b"));
    assert!(!former.may_run(&id("b")));
}
