use super::*;
use expect_test::{Expect, expect};

fn definition(names: &Value, accepted: &Value) -> Object {
    let mut definition = Object::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    definition.set(&["spec"], json!({ "group": "a.b", "names": names }));
    definition.set(&["status"], json!({ "acceptedNames": accepted }));
    definition
}

fn names(plural: &str, kind: &str, short: &[&str]) -> Value {
    json!({
        "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
        "listKind": format!("{kind}List"), "shortNames": short,
    })
}

fn check(definition: &Object, others: &[Object], expected: Expect) {
    let settled = settled(definition, others.iter(), "T1");
    let shown = match settled {
        None => "nothing to do".to_owned(),
        Some(settled) => {
            let conditions = settled.list(&["status", "conditions"]).iter();
            let conditions = conditions.map(|one| {
                let text = |name: &str| json::text(one, name);
                format!(
                    "{} {} {}: {} since {}",
                    text("type"),
                    text("status"),
                    text("reason"),
                    text("message"),
                    text("lastTransitionTime"),
                )
            });
            let accepted = settled.get(&["status", "acceptedNames"]);
            let accepted = accepted.map(Value::to_string).unwrap_or_default();
            let mut lines = vec![accepted];
            lines.extend(conditions);
            lines.join("\n")
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn names_of_nobody_are_accepted_and_the_kind_is_established() {
    let wanted = names("foos", "Foo", &["f"]);
    let own = definition(&wanted, &json!({ "plural": "", "kind": "" }));
    check(
        &own,
        &[],
        expect![[r#"
            {"kind":"Foo","listKind":"FooList","plural":"foos","shortNames":["f"],"singular":"foo"}
            NamesAccepted True NoConflicts: no conflicts found since T1
            Established True InitialNamesAccepted: the initial names have been accepted since T1"#]],
    );
    let settled = settled(&own, std::iter::empty(), "T1").expect("there is something to do");
    let all = [settled.clone()];
    check(&settled, &all, expect!["nothing to do"]);
}

#[test]
fn a_name_stays_with_the_first() {
    let other = names("foos", "Foo", &["f"]);
    let others = [definition(&other, &other)];
    let own = definition(
        &names("bars", "Foo", &["f", "b"]),
        &json!({ "plural": "", "kind": "" }),
    );
    check(
        &own,
        &others,
        expect![[r#"
            {"kind":"","plural":"bars"}
            NamesAccepted False ListKindConflict: "FooList" is already in use since T1
            Established False NotAccepted: not all names are accepted since T1"#]],
    );
}

#[test]
fn what_is_established_stays_so() {
    let accepted = names("bars", "Bar", &[]);
    let mut own = definition(&names("bars", "Bar", &["f"]), &accepted);
    let conditions = json!([
        { "type": "Established", "status": "True", "reason": "InitialNamesAccepted",
          "message": "the initial names have been accepted", "lastTransitionTime": "T0" },
        { "type": "NamesAccepted", "status": "True", "reason": "NoConflicts",
          "message": "no conflicts found", "lastTransitionTime": "T0" },
    ]);
    own.set(&["status", "conditions"], conditions);
    let other = names("foos", "Foo", &["f"]);
    check(
        &own,
        &[definition(&other, &other)],
        expect![[r#"
            {"kind":"Bar","listKind":"BarList","plural":"bars","shortNames":[],"singular":"bar"}
            Established True InitialNamesAccepted: the initial names have been accepted since T0
            NamesAccepted False ShortNamesConflict: "f" is already in use since T1"#]],
    );
}

#[test]
fn groups_of_kubernetes_need_a_word() {
    let wanted = names("foos", "Foo", &[]);
    let mut own = definition(&wanted, &wanted);
    own.set(&["spec", "group"], "gateway.networking.k8s.io".into());
    let annotations = json!({ APPROVED: "https://github.com/x/pull/1" });
    own.set(&["metadata", "annotations"], annotations);
    let settled = settled(&own, std::iter::empty(), "T1").expect("there is something to do");
    let found = condition(&settled, "KubernetesAPIApprovalPolicyConformant");
    let told = found.map(|one| json::text(one, "message").to_owned());
    assert_eq!(
        told.as_deref(),
        Some("approved in https://github.com/x/pull/1")
    );
}
