//! What becomes of an object, by its owners and finalizers.

use super::super::graph::Seen;
use super::*;
use serde_json::json;

fn see(graph: &mut Graph, name: &str, owner: &str, blocks: bool, waits: bool) {
    let meta = json!({
        "name": name, "uid": name,
        "deletionTimestamp": waits.then_some("2030-01-01T00:00:00Z"),
        "finalizers": if waits { vec![FOREGROUND] } else { vec![] },
        "ownerReferences": [{"apiVersion": "v1", "kind": "Set", "name": owner, "uid": owner,
                             "blockOwnerDeletion": blocks}],
    });
    let kind = graph.kind("v1", "Set");
    let meta: ObjectMeta = serde_json::from_value(meta).unwrap();
    let seen: Seen = graph.seen(&kind, &meta).unwrap();
    graph.apply(seen);
}

fn owners(standings: &[Standing]) -> Vec<(OwnerReference, Standing)> {
    let each = standings.iter().enumerate().map(|(number, standing)| {
        let owner = OwnerReference {
            uid: format!("{standing:?}-{number}"),
            ..OwnerReference::default()
        };
        (owner, *standing)
    });
    each.collect()
}

fn planned(graph: &Graph, finalizers: &[&str], standings: &[Standing]) -> Action {
    let latest = ObjectMeta {
        finalizers: Some(finalizers.iter().map(|&one| one.to_owned()).collect()),
        ..ObjectMeta::default()
    };
    plan(graph, &"x".into(), &latest, &owners(standings))
}

fn delete(propagation: Propagation, unblock: bool) -> Action {
    Action::Delete {
        propagation,
        unblock,
    }
}

#[test]
fn one_solid_owner_keeps_an_object() {
    use Standing::{Dangling, Solid, Waiting};
    let graph = Graph::default();
    assert_eq!(planned(&graph, &[], &[]), Action::Keep);
    assert_eq!(planned(&graph, &[], &[Solid]), Action::Keep);
    assert_eq!(
        planned(&graph, &[], &[Dangling, Solid, Waiting]),
        Action::RemoveOwners(vec!["Dangling-0".to_owned(), "Waiting-2".to_owned()])
    );
}

#[test]
fn without_one_it_is_deleted_as_its_finalizers_say() {
    use Propagation::{Background, Foreground, Orphan};
    let graph = Graph::default();
    let dangling = [Standing::Dangling];
    assert_eq!(planned(&graph, &[], &dangling), delete(Background, false));
    assert_eq!(
        planned(&graph, &[FOREGROUND], &dangling),
        delete(Foreground, false)
    );
    assert_eq!(planned(&graph, &[ORPHAN], &dangling), delete(Orphan, false));
    let waiting = [Standing::Waiting];
    assert_eq!(planned(&graph, &[], &waiting), delete(Background, false));
}

#[test]
fn a_waiting_owner_waits_for_dependents_of_dependents() {
    let mut graph = Graph::default();
    see(&mut graph, "child", "x", true, false);
    let waiting = [Standing::Waiting];
    let foreground = Propagation::Foreground;
    assert_eq!(planned(&graph, &[], &waiting), delete(foreground, false));
    see(&mut graph, "circle", "x", true, true);
    assert_eq!(planned(&graph, &[], &waiting), delete(foreground, true));
}

#[test]
fn only_blocking_dependents_are_waited_for() {
    let mut graph = Graph::default();
    let x = Uid::from("x");
    see(&mut graph, "free", "x", false, false);
    assert_eq!(wait(&graph, &x), Wait::Over);
    see(&mut graph, "a", "x", true, false);
    see(&mut graph, "b", "x", true, true);
    assert_eq!(wait(&graph, &x), Wait::For(vec!["a".into()]));
    graph.delete(&"a".into());
    assert_eq!(wait(&graph, &x), Wait::For(Vec::new()));
    graph.delete(&"b".into());
    assert_eq!(wait(&graph, &x), Wait::Over);
}
