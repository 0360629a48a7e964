//! The rows of the catalogue are those that upstream lists.

use super::*;
use std::fmt::Write;

const FACTS: &str = include_str!("../../facts/discovery.txt");

/// The catalogue in the form of the facts.
fn shown() -> String {
    let or_none = |list: &[&str]| match list {
        [] => "-".to_owned(),
        list => list.join(","),
    };
    let mut text = String::new();
    for row in all() {
        let version = row.api_version();
        let scope = if row.is_namespaced() {
            "Namespaced"
        } else {
            "Cluster"
        };
        writeln!(
            text,
            "{version} {} {} {} {scope} {} {} {}",
            row.plural,
            or_none(&[row.singular][usize::from(row.singular.is_empty())..]),
            row.kind,
            or_none(row.short_names),
            or_none(row.categories),
            row.verbs.join(",")
        )
        .unwrap();
        for sub in row.subresources {
            let kind = sub.body.map_or(row.kind, |(_, _, kind)| kind);
            let verbs = sub.verbs.join(",");
            writeln!(
                text,
                "{version} {}/{} - {kind} {scope} - - {verbs}",
                row.plural, sub.name
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn rows_are_as_upstream_lists_them() {
    let facts: Vec<&str> = FACTS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let shown = shown();
    let shown: Vec<&str> = shown.lines().collect();
    for (ours, theirs) in shown.iter().zip(&facts) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(shown.len(), facts.len());
}

#[test]
fn each_row_is_found_and_belongs_to_a_group() {
    for row in all() {
        let found = find(row.group, row.version, row.plural).unwrap();
        assert!(std::ptr::eq(found, row));
        assert!(std::ptr::eq(
            by_kind(row.group, row.version, row.kind).unwrap(),
            row
        ));
        assert!(
            groups().any(|group| group.name == row.group && group.versions.contains(&row.version))
        );
        let (group, plural) = row.stored_as;
        assert!(stored(group, plural).is_some(), "{row:?} is stored nowhere");
        assert!(row.schema.starts_with("io.k8s."));
    }
    assert_eq!(of_version("apps", "v1").count(), 5);
}

#[test]
fn objects_are_stored_and_selected_as_upstream_does() {
    let facts = include_str!("../../facts/storage.txt").lines();
    let facts: Vec<&str> = facts.filter(|line| !line.starts_with('#')).collect();
    let mut shown = Vec::new();
    for row in all().iter().filter(|row| row.verbs.contains(&"watch")) {
        let (group, plural) = row.stored_as;
        let owner = stored(group, plural).unwrap().api_version();
        let fields = match row.selectable_fields {
            [] => "-".to_owned(),
            fields => fields.join(","),
        };
        let own = row.api_version();
        shown.push(format!("{own} {} {owner} {fields}", row.plural));
    }
    for (ours, theirs) in shown.iter().zip(&facts) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(shown.len(), facts.len());
}
