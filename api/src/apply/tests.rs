//! Managers and applies, text in and text out: each case is what upstream answers.

use super::{Filter, Writer};
use crate::object::Object;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

mod sets;
mod workloads;

const NOW: &str = "2026-01-01T00:00:00Z";

fn writer(manager: &'static str) -> Writer<'static> {
    Writer {
        api_version: "v1",
        kind: "ConfigMap",
        type_name: "io.k8s.api.core.v1.ConfigMap",
        family: None,
        subresource: "",
        filter: Filter::All,
        manager,
        now: NOW,
    }
}

fn config_map(data: Value) -> Object {
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": data,
    });
    Object::from_value(value).expect("an object")
}

/// One line an entry: who, how, and what.
fn shown(list: Option<&Value>) -> String {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let (manager, operation) = (text("manager"), text("operation"));
            format!(
                "{manager} {operation} {} {}\n",
                text("time"),
                entry["fieldsV1"]
            )
        })
        .collect()
}

/// Runs a script of writes to one ConfigMap; each step is `update|apply|force MANAGER DATA`.
fn check(script: &str, expected: Expect) {
    let mut live: Option<Object> = None;
    let mut out = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let mut words = line.splitn(3, ' ');
        let verb = words.next().unwrap_or_default();
        let manager: &'static str = words.next().unwrap_or_default().to_owned().leak();
        let data: Value = serde_json::from_str(words.next().unwrap_or("{}")).expect("JSON");
        let mut new = config_map(data);
        if verb == "update" {
            let list = writer(manager).update(live.as_ref(), &new);
            super::put_managed_fields(new.root_mut(), list);
            live = Some(new);
            continue;
        }
        match writer(manager).apply(live.as_ref(), new.root(), verb == "force") {
            Ok(applied) => live = Object::from_value(Value::Object(applied.object)),
            Err(status) => out.push_str(&format!("{} {}\n", status.code, status.message)),
        }
    }
    let live = live.expect("something was written");
    out.push_str(&format!(
        "{}\n",
        live.get(&["data"]).unwrap_or(&Value::Null)
    ));
    out.push_str(&shown(live.get(&["metadata", "managedFields"])));
    expected.assert_eq(&out);
}

#[test]
fn an_update_manages_what_it_changes() {
    check(
        r#"update a {"x":"1","y":"1"}
           update b {"x":"2","y":"1"}"#,
        expect![[r#"
            {"x":"2","y":"1"}
            a Update 2026-01-01T00:00:00Z {"f:data":{".":{},"f:y":{}}}
            b Update 2026-01-01T00:00:00Z {"f:data":{"f:x":{}}}
        "#]],
    );
}

#[test]
fn an_apply_of_what_others_manage_conflicts_until_it_is_forced() {
    check(
        r#"apply a {"x":"1","y":"1"}
           apply b {"x":"2","z":"1"}
           force b {"x":"2","z":"1"}"#,
        expect![[r#"
            409 Apply failed with 1 conflict: conflict with "a": .data.x
            {"x":"2","y":"1","z":"1"}
            a Apply 2026-01-01T00:00:00Z {"f:data":{"f:y":{}}}
            b Apply 2026-01-01T00:00:00Z {"f:data":{"f:x":{},"f:z":{}}}
        "#]],
    );
}

#[test]
fn what_is_no_longer_applied_goes_unless_others_have_it() {
    check(
        r#"apply a {"x":"1","y":"1","z":"1"}
           apply b {"x":"1"}
           update c {"x":"1","y":"2","z":"1"}
           apply a {}"#,
        expect![[r#"
            {"x":"1","y":"2"}
            b Apply - {"f:data":{"f:x":{}}}
            a Apply 2026-01-01T00:00:00Z {"f:data":{}}
            c Update 2026-01-01T00:00:00Z {"f:data":{"f:y":{}}}
        "#]],
    );
}

#[test]
fn what_was_there_before_the_first_apply_has_a_manager_of_its_own() {
    let live = config_map(json!({ "x": "1" }));
    let patch = config_map(json!({ "y": "1" }));
    let applied = writer("a")
        .apply(Some(&live), patch.root(), false)
        .expect("applies");
    let object = Object::from_value(Value::Object(applied.object)).expect("an object");
    expect![[r#"
        a Apply 2026-01-01T00:00:00Z {"f:data":{"f:y":{}}}
        before-first-apply Update 2026-01-01T00:00:00Z {"f:data":{".":{},"f:x":{}}}
    "#]]
    .assert_eq(&shown(object.get(&["metadata", "managedFields"])));
}

#[test]
fn more_than_ten_updaters_are_merged() {
    let script: String = (0..13)
        .map(|index| {
            let entries: Vec<String> = (0..=index).map(|n| format!("\"k{n:02}\":\"1\"")).collect();
            format!("update m{index:02} {{{}}}\n", entries.join(","))
        })
        .collect();
    check(
        &script,
        expect![[r#"
            {"k00":"1","k01":"1","k02":"1","k03":"1","k04":"1","k05":"1","k06":"1","k07":"1","k08":"1","k09":"1","k10":"1","k11":"1","k12":"1"}
            ancient-changes Update 2026-01-01T00:00:00Z {"f:data":{".":{},"f:k00":{},"f:k01":{},"f:k02":{},"f:k03":{}}}
            m04 Update 2026-01-01T00:00:00Z {"f:data":{"f:k04":{}}}
            m05 Update 2026-01-01T00:00:00Z {"f:data":{"f:k05":{}}}
            m06 Update 2026-01-01T00:00:00Z {"f:data":{"f:k06":{}}}
            m07 Update 2026-01-01T00:00:00Z {"f:data":{"f:k07":{}}}
            m08 Update 2026-01-01T00:00:00Z {"f:data":{"f:k08":{}}}
            m09 Update 2026-01-01T00:00:00Z {"f:data":{"f:k09":{}}}
            m10 Update 2026-01-01T00:00:00Z {"f:data":{"f:k10":{}}}
            m11 Update 2026-01-01T00:00:00Z {"f:data":{"f:k11":{}}}
            m12 Update 2026-01-01T00:00:00Z {"f:data":{"f:k12":{}}}
        "#]],
    );
}
