//! Scripts of what watches and the server say, and what the graph asks for each time.
//!
//! `see KIND/NAMESPACE/NAME [deleting] [foreground] [orphan] [owner=KIND/NAME[!]]...`, where `!`
//! blocks the owner's deletion; `delete NAME`; `absent KIND/NAMESPACE/NAME`. The uid of an object
//! is its name.

use super::*;
use expect_test::{Expect, expect};

fn identity(graph: &mut Graph, text: &str) -> Identity {
    let parts: Vec<&str> = text.split('/').collect();
    Identity {
        kind: graph.kind("v1", parts[0]),
        namespace: parts[1].into(),
        name: parts[2].into(),
        uid: parts[2].into(),
    }
}

fn owner(graph: &mut Graph, text: &str) -> Owner {
    let (text, blocks) = text
        .strip_suffix('!')
        .map_or((text, false), |text| (text, true));
    let (kind, name) = text.split_once('/').unwrap();
    Owner {
        uid: name.into(),
        kind: graph.kind("v1", kind),
        name: name.into(),
        blocks,
    }
}

fn step(graph: &mut Graph, line: &str) {
    let mut words = line.split_whitespace();
    let (verb, what) = (words.next().unwrap(), words.next().unwrap());
    let words: Vec<&str> = words.collect();
    match verb {
        "see" => {
            let owners = words.iter().filter_map(|word| word.strip_prefix("owner="));
            let seen = Seen {
                identity: identity(graph, what),
                owners: owners.map(|text| owner(graph, text)).collect(),
                deleting: words.contains(&"deleting"),
                foreground: words.contains(&"foreground"),
                orphan: words.contains(&"orphan"),
            };
            graph.apply(seen);
        }
        "delete" => graph.delete(&what.into()),
        "absent" => {
            let identity = identity(graph, what);
            graph.confirm_absent(&identity);
        }
        other => panic!("what is {other}?"),
    }
}

fn shown(graph: &Graph, effect: &Effect) -> String {
    match effect {
        Effect::AttemptDelete(uid) => {
            let node = graph.get(uid);
            let is_virtual = node.is_some_and(|node| node.is_virtual);
            let suffix = if is_virtual { " (virtual)" } else { "" };
            format!("attempt {uid}{suffix}")
        }
        Effect::AttemptDeleteLater(uid) => format!("later {uid}"),
        Effect::AttemptOrphan(uid) => format!("orphan {uid}"),
        Effect::InvalidNamespace { dependent, owner } => {
            format!("invalid {} of {}", owner.name, dependent.name)
        }
    }
}

fn check(script: &str, expected: Expect) {
    let mut graph = Graph::default();
    let mut text = String::new();
    for line in script.lines().map(str::trim) {
        step(&mut graph, line);
        let effects = graph.take_effects();
        let effects: Vec<_> = effects.iter().map(|one| shown(&graph, one)).collect();
        text.push_str(&format!("{line} -> {}\n", effects.join(", ")));
    }
    expected.assert_eq(&text);
}

#[test]
fn dependents_of_a_deleted_owner_are_looked_at() {
    check(
        "see Set/ns/web
         see Pod/ns/a owner=Set/web
         see Pod/ns/b owner=Set/web owner=Set/other
         see Pod/ns/c
         delete web
         delete a",
        expect![[r#"
            see Set/ns/web -> 
            see Pod/ns/a owner=Set/web -> 
            see Pod/ns/b owner=Set/web owner=Set/other -> attempt other (virtual)
            see Pod/ns/c -> 
            delete web -> attempt a, attempt b
            delete a -> 
        "#]],
    );
}

#[test]
fn an_owner_that_nobody_saw_is_virtual_until_it_is_seen_or_denied() {
    check(
        "see Pod/ns/a owner=Set/web
         see Pod/ns/b owner=Set/web
         see Set/ns/web
         see Pod/ns/c owner=Set/gone
         absent Set/ns/gone
         see Pod/ns/d owner=Set/gone",
        expect![[r#"
            see Pod/ns/a owner=Set/web -> attempt web (virtual)
            see Pod/ns/b owner=Set/web -> 
            see Set/ns/web -> 
            see Pod/ns/c owner=Set/gone -> attempt gone (virtual)
            absent Set/ns/gone -> attempt c
            see Pod/ns/d owner=Set/gone -> attempt gone (virtual)
        "#]],
    );
}

#[test]
fn a_deletion_with_a_finalizer_starts_once() {
    check(
        "see Set/ns/web
         see Pod/ns/a owner=Set/web!
         see Pod/ns/b owner=Set/web
         see Set/ns/web deleting foreground
         see Set/ns/web deleting foreground
         see Pod/ns/a owner=Set/web
         delete b
         see Set/ns/other deleting orphan
         see Set/ns/other deleting orphan",
        expect![[r#"
            see Set/ns/web -> 
            see Pod/ns/a owner=Set/web! -> 
            see Pod/ns/b owner=Set/web -> 
            see Set/ns/web deleting foreground -> attempt a, attempt b, attempt web
            see Set/ns/web deleting foreground -> 
            see Pod/ns/a owner=Set/web -> attempt web
            delete b -> attempt web
            see Set/ns/other deleting orphan -> orphan other
            see Set/ns/other deleting orphan -> 
        "#]],
    );
}

#[test]
fn an_owner_of_another_namespace_is_told_whoever_comes_first() {
    check(
        "see Set/far/web
         see Pod/ns/a owner=Set/web
         see Pod/ns/b owner=Set/later
         see Set/far/later",
        expect![[r#"
            see Set/far/web -> 
            see Pod/ns/a owner=Set/web -> invalid web of a, attempt a
            see Pod/ns/b owner=Set/later -> attempt later (virtual)
            see Set/far/later -> invalid later of b, attempt b
        "#]],
    );
}

#[test]
fn a_virtual_owner_is_sought_wherever_its_dependents_say() {
    check(
        "see Pod/ns/a owner=Set/web
         see Pod/other/b owner=Set/web
         absent Set/ns/web
         absent Set/other/web
         see Set/other/web",
        expect![[r#"
            see Pod/ns/a owner=Set/web -> attempt web (virtual)
            see Pod/other/b owner=Set/web -> attempt b
            absent Set/ns/web -> attempt a, later web
            absent Set/other/web -> attempt b, later web
            see Set/other/web -> invalid web of a, attempt a
        "#]],
    );
}

#[test]
fn a_wrong_description_does_not_remove_an_owner_that_was_seen() {
    check(
        "see Set/ns/web
         see Pod/ns/a owner=Sett/web
         absent Sett/ns/web
         see Pod/ns/b owner=Set/web
         delete web",
        expect![[r#"
            see Set/ns/web -> 
            see Pod/ns/a owner=Sett/web -> attempt a
            absent Sett/ns/web -> attempt a
            see Pod/ns/b owner=Set/web -> 
            delete web -> attempt a, attempt b
        "#]],
    );
}

#[test]
fn what_a_list_does_not_show_is_gone() {
    let mut graph = Graph::default();
    for line in ["see Set/ns/web", "see Pod/ns/a owner=Set/web"] {
        step(&mut graph, line);
    }
    step(&mut graph, "see Pod/ns/b owner=Set/unseen");
    graph.take_effects();
    let sets = graph.kind("v1", "Set");
    graph.retain_listed(&sets, &HashSet::new());
    let effects = graph.take_effects();
    assert_eq!(effects, [Effect::AttemptDelete("a".into())]);
    assert!(graph.get(&"unseen".into()).is_some());
}

#[test]
fn absent_owners_are_remembered_and_the_oldest_forgotten() {
    let mut graph = Graph::default();
    let first = identity(&mut graph, "Set/ns/first");
    let everywhere = identity(&mut graph, "Node//n");
    let from_within = identity(&mut graph, "Node/ns/n");
    graph.absent().add(first.clone());
    graph.absent().add(everywhere);
    assert!(graph.absent().contains(&from_within));
    for number in 0..499 {
        let other = identity(&mut graph, &format!("Set/ns/{number}"));
        graph.absent().add(other);
    }
    assert!(!graph.absent().contains(&first));
    assert!(graph.absent().contains(&from_within));
}
