//! What files say, and what is said of bad ones.

use super::*;

/// `document kind name`, in the order in which they are made.
fn shown(file: &str, text: &str) -> Result<Vec<String>, String> {
    let wanted = read(file, text)?;
    let line = |one: &Wanted| {
        let name = one.object["metadata"]["name"].as_str().unwrap();
        format!("{} {} {name}", one.document, one.kind)
    };
    Ok(wanted.iter().map(line).collect())
}

#[test]
fn documents_and_lists_are_made_in_an_order_that_can_work() {
    let text = "\
---
# A document with nothing in it.
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: n}}
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}}
---
";
    let expected = [
        "3 Namespace n",
        "4 CustomResourceDefinition c",
        "2 ConfigMap a",
        "3 Secret b",
    ];
    assert_eq!(shown("a.yaml", text).unwrap(), expected);
    assert_eq!(shown("a.yaml", "").unwrap(), [""; 0]);
}

#[test]
fn json_may_hold_several_and_tabs() {
    let one =
        "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"a\"}}\n";
    let expected = ["1 Secret a", "2 Secret a"];
    assert_eq!(shown("a.json", &one.repeat(2)).unwrap(), expected);
}

#[test]
fn what_is_wrong_is_said_with_its_document() {
    for (text, expected) in [
        ("a: b", "document 1: it has no apiVersion"),
        ("{apiVersion: v1}", "document 1: it has no kind"),
        (
            "---\n{apiVersion: v1, kind: Pod, metadata: {generateName: a}}",
            "document 1: it has no metadata.name",
        ),
        ("- a", "document 1: it is no object"),
    ] {
        assert_eq!(read("a.yaml", text), Err(expected.to_owned()), "{text}");
    }
    let half = "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind";
    let why = read("a.yaml", half).unwrap_err();
    assert!(why.starts_with("document 2: "), "{why}");
    let why = read("a.json", "{\"apiVersion\"").unwrap_err();
    assert!(why.starts_with("document 1: "), "{why}");
}

#[test]
fn there_is_an_end_to_what_a_file_may_say() {
    let one = "---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n";
    assert_eq!(
        read("a.yaml", &one.repeat(OBJECTS_MAX)).unwrap().len(),
        OBJECTS_MAX
    );
    let many = read("a.yaml", &one.repeat(OBJECTS_MAX + 1));
    assert_eq!(many, Err("more than 1000 objects".to_owned()));
}

#[test]
fn what_names_no_namespace_is_in_default_if_in_any() {
    let text = "{apiVersion: v1, kind: Any, metadata: {name: a, namespace: n}}";
    let mut one = read("a.yaml", text).unwrap().remove(0);
    assert_eq!(one.identity(true).namespace, "n");
    assert_eq!(one.identity(false).namespace, "");
    one.object["metadata"]["namespace"] = "".into();
    assert_eq!(one.identity(true).namespace, "default");
}
