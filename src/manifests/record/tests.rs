//! What is remembered is read back.

use super::*;

fn record(file: &str) -> Record {
    let identity = |namespace: &str, name: &str| Identity {
        api_version: "v1".to_owned(),
        kind: "Any".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Record {
        file: file.to_owned(),
        entries: vec![
            Entry::new(identity("n", "a"), "u", true),
            Entry::new(identity("", "b"), "", false),
        ],
        failure: String::new(),
    }
}

#[test]
fn a_record_goes_there_and_back() {
    let mut known = record("My file.yaml");
    assert_eq!(
        Record::from_config_map(&known.to_config_map()),
        Some(known.clone())
    );
    known.failure = "document 1: nothing".to_owned();
    let map = known.to_config_map();
    assert_eq!(Record::from_config_map(&map), Some(known));
    let data = map.data.unwrap();
    assert_eq!(
        data["objects"],
        "[{\"apiVersion\":\"v1\",\"kind\":\"Any\",\"namespace\":\"n\",\"name\":\"a\",\
         \"uid\":\"u\",\"made\":true},\
         {\"apiVersion\":\"v1\",\"kind\":\"Any\",\"name\":\"b\",\"made\":false}]"
    );
}

#[test]
fn any_file_has_a_name_of_its_own() {
    let long = format!("{}.yaml", "\u{e9}".repeat(100));
    let mut names = std::collections::BTreeSet::new();
    for file in ["a.yaml", "a_yaml", "A.yaml", "-.yaml", &long] {
        let name = Record::of(file).name();
        assert!(
            coracle_api::names::dns_subdomain(&name).is_empty(),
            "{name}"
        );
        let map = Record::of(file).to_config_map();
        let label = map.metadata.labels.unwrap()[LABEL].clone();
        assert!(label.len() <= 63 && !label.starts_with('-'), "{label}");
        names.insert(name);
    }
    assert_eq!(names.len(), 5);
}

#[test]
fn what_somebody_wrote_over_is_not_believed() {
    let good = record("a.yaml").to_config_map();
    let with = |key: &str, value: &str| {
        let mut map = good.clone();
        let data = map.data.as_mut().unwrap();
        data.insert(key.to_owned(), value.to_owned());
        Record::from_config_map(&map)
    };
    assert_eq!(with("file", "b.yaml"), None, "its name is that of another");
    assert_eq!(with("objects", "[{}]"), None);
    let mut empty = good.clone();
    empty.data = None;
    assert_eq!(Record::from_config_map(&empty), None);
}

#[test]
fn only_what_is_not_there_yet_is_foreseen() {
    let mut known = record("a.yaml");
    let identity = known.entries[0].identity.clone();
    for (uid, is_made, is_foreseen) in [
        ("", true, true),
        // Deleted since, and made again: its next uid is not known yet.
        ("u", true, false),
        ("u", false, false),
    ] {
        known.put(Entry::new(identity.clone(), uid, is_made));
        assert_eq!(known.foresees(&identity), is_foreseen, "{uid} {is_made}");
    }
    assert!(!Record::of("b.yaml").foresees(&identity));
}
