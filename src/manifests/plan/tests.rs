//! What is taken away, and above all what is not.

use super::super::document;
use super::*;

fn identity(name: &str) -> Identity {
    Identity {
        api_version: "v1".to_owned(),
        kind: "Any".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

/// `a` is an object that was made, `-a` one that was there.
fn record(file: &str, names: &str) -> Record {
    let entry = |name: &str| {
        let plain = name.trim_start_matches('-');
        Entry::new(identity(plain), "u", plain == name)
    };
    Record {
        file: file.to_owned(),
        entries: names.split_whitespace().map(entry).collect(),
        failure: String::new(),
    }
}

fn file(name: &str) -> File {
    File {
        name: name.to_owned(),
        stamp: (0, 0, 0, 0),
        text: Ok(String::new()),
        is_young: false,
    }
}

fn saying(names: &str) -> Said {
    let line = |name| format!("---\n{{apiVersion: v1, kind: Any, metadata: {{name: {name}}}}}\n");
    let text: String = names.split_whitespace().map(line).collect();
    Ok(document::read("a.yaml", &text).unwrap())
}

/// `file: what goes; what is remembered`.
fn check(records: &[Record], files: &[(File, Said)]) -> Vec<String> {
    let records = records.iter().map(|one| (one.file.clone(), one.clone()));
    let said = files
        .iter()
        .map(|(file, said)| (file.name.as_str(), said.clone()));
    let files: Vec<File> = files.iter().map(|(file, _)| file.clone()).collect();
    let kinds = BTreeMap::from([(("v1".to_owned(), "Any".to_owned()), true)]);
    let steps = plan(&records.collect(), &files, &said.collect(), &kinds);
    let names = |entries: &[Entry]| {
        let names: Vec<&str> = entries
            .iter()
            .map(|one| one.identity.name.as_str())
            .collect();
        names.join(" ")
    };
    let line = |step: &Step| {
        let (goes, stays) = (names(&step.surplus), names(&step.record.entries));
        let gone = if step.is_gone { " gone" } else { "" };
        format!("{}{gone}: {goes}; {stays}", step.record.file)
    };
    steps.iter().map(line).collect()
}

#[test]
fn what_a_file_no_longer_says_goes_last_first() {
    let known = [record("f", "a b c")];
    assert_eq!(
        check(&known, &[(file("f"), saying("b"))]),
        ["f: c a; a b c"]
    );
    assert_eq!(check(&known, &[(file("f"), saying("a b c d"))]), [""; 0]);
}

#[test]
fn a_file_that_is_gone_takes_all_along_but_what_was_there_before_it() {
    assert_eq!(check(&[record("f", "a -b")], &[]), ["f gone: a; a"]);
}

#[test]
fn what_another_file_says_stays() {
    let known = [record("f", "a b")];
    let said = [(file("g"), saying("a"))];
    // It was not applied for the other one yet: that it was made is still to be known.
    assert_eq!(check(&known, &said), ["f gone: b; a b"]);
    let known = [record("f", "a b"), record("g", "a")];
    assert_eq!(check(&known, &said), ["f gone: b; b"]);
}

#[test]
fn a_file_that_is_bad_or_being_written_loses_nothing() {
    let known = [record("f", "a"), record("g", "a b")];
    let bad = || Err("nonsense".to_owned());
    assert_eq!(
        check(&known, &[(file("f"), bad()), (file("g"), bad())]),
        [""; 0]
    );
    // And holds what it said before against others.
    assert_eq!(check(&known, &[(file("f"), bad())]), ["g gone: b; b"]);
    let young = File {
        is_young: true,
        ..file("g")
    };
    let files = [(file("f"), saying("a")), (young, saying(""))];
    assert_eq!(check(&known, &files), [""; 0]);
}

#[test]
fn what_moves_to_a_new_file_stays_until_it_is_known_what_that_one_says() {
    let young = File {
        is_young: true,
        ..file("new")
    };
    let known = [record("old", "a b")];
    assert_eq!(check(&known, &[(young, saying("a b"))]), [""; 0]);
    let bad = || (file("new"), Err("nonsense".to_owned()));
    assert_eq!(check(&known, &[bad()]), [""; 0]);
    // That it is bad is recorded by then.
    let known = [record("old", "a b"), record("new", "")];
    assert_eq!(check(&known, &[bad()]), [""; 0]);
    let settled = [(file("new"), saying("a b"))];
    // It may yet be refused.
    assert_eq!(check(&known, &settled), ["old gone: ; a b"]);
    let known = [record("old", "a b"), record("new", "a b")];
    assert_eq!(check(&known, &settled), ["old gone: ; "]);
}

#[test]
fn what_is_said_in_another_version_of_its_kind_stays() {
    let mut known = record("f", "a");
    known.entries[0].identity.api_version = "example.com/v1beta1".to_owned();
    let text = "{apiVersion: example.com/v1, kind: Any, metadata: {name: a}}";
    let said = Ok(document::read("a.yaml", text).unwrap());
    assert_eq!(check(&[known.clone()], &[(file("f"), said)]), [""; 0]);
    // And is the same one where it is recorded.
    let mut newer = identity("a");
    newer.api_version = "example.com/v1".to_owned();
    known.put(Entry::new(newer.clone(), "u", true));
    assert_eq!(known.entries, [Entry::new(newer, "u", true)]);
    // Of another group, it is another one.
    assert_eq!(check(&[known], &[(file("f"), saying("a"))]), ["f: a; a"]);
}
