//! A node as text in, what is written to it out: `CONDITION=STATUS` words, `taint=KEY:EFFECT`,
//! `cordoned`, `label=KEY:VALUE`.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn now() -> Time {
    Time(Timestamp::from_second(1_800_000_000).unwrap())
}

fn node(text: &str) -> Node {
    let (mut conditions, mut taints) = (Vec::new(), Vec::new());
    let mut node = json!({ "metadata": { "name": "a", "labels": {} }, "spec": {} });
    for word in text.split_whitespace() {
        match word.split_once('=') {
            None => node["spec"]["unschedulable"] = json!(word == "cordoned"),
            Some(("taint", taint)) => {
                let (key, effect) = taint.split_once(':').unwrap();
                let key = match key.split_once('/') {
                    None => format!("node.kubernetes.io/{key}"),
                    Some(_) => key.to_owned(),
                };
                taints.push(json!({ "key": key, "effect": effect }));
            }
            Some(("label", label)) => {
                let (key, value) = label.split_once(':').unwrap();
                node["metadata"]["labels"][key] = json!(value);
            }
            Some((kind, status)) => conditions.push(json!({ "type": kind, "status": status })),
        }
    }
    node["status"] = json!({ "conditions": conditions });
    node["spec"]["taints"] = json!(taints);
    serde_json::from_value(node).unwrap()
}

fn text(node: Option<Node>) -> String {
    let Some(node) = node else {
        return "nothing".to_owned();
    };
    let mut words: Vec<String> = node::taints(&node)
        .iter()
        .map(|taint| {
            let key = taint.key.trim_start_matches("node.kubernetes.io/");
            format!("{key}:{}", taint.effect)
        })
        .collect();
    let labels = node.metadata.labels.iter().flatten();
    words.extend(labels.map(|(key, value)| format!("{key}={value}")));
    words.join("\n")
}

fn check_marked(given: &str, expected: Expect) {
    expected.assert_eq(&text(marked(&node(given), &now())));
}

#[test]
fn conditions_have_their_taints() {
    check_marked("Ready=True", expect!["nothing"]);
    check_marked("Ready=False", expect!["not-ready:NoSchedule"]);
    check_marked(
        "Ready=Unknown MemoryPressure=Unknown",
        expect!["unreachable:NoSchedule"],
    );
    check_marked(
        "Ready=True MemoryPressure=True DiskPressure=True PIDPressure=True NetworkUnavailable=True",
        expect![[r#"
            memory-pressure:NoSchedule
            disk-pressure:NoSchedule
            pid-pressure:NoSchedule
            network-unavailable:NoSchedule"#]],
    );
    check_marked("Ready=True cordoned", expect!["unschedulable:NoSchedule"]);
    check_marked(
        "Ready=True DiskPressure=True taint=disk-pressure:NoSchedule",
        expect!["nothing"],
    );
}

#[test]
fn taints_go_when_conditions_heal_and_those_of_others_stay() {
    check_marked(
        "Ready=True taint=not-ready:NoSchedule taint=unreachable:NoExecute taint=x/own:NoExecute \
         taint=memory-pressure:NoSchedule taint=unschedulable:NoSchedule \
         taint=disk-pressure:PreferNoSchedule",
        expect![[r#"
            x/own:NoExecute
            disk-pressure:PreferNoSchedule"#]],
    );
}

#[test]
fn the_taint_that_evicts_follows_the_state() {
    check_marked(
        "Ready=False taint=not-ready:NoSchedule taint=unreachable:NoExecute",
        expect![[r#"
            not-ready:NoSchedule
            not-ready:NoExecute"#]],
    );
    check_marked(
        "Ready=Unknown taint=unreachable:NoSchedule taint=not-ready:NoExecute",
        expect![[r#"
            unreachable:NoSchedule
            unreachable:NoExecute"#]],
    );
}

#[test]
fn beta_labels_repeat_the_stable_ones() {
    check_marked(
        "Ready=True label=kubernetes.io/os:linux label=beta.kubernetes.io/os:plan9 \
         label=kubernetes.io/arch:arm64",
        expect![[r#"
            beta.kubernetes.io/arch=arm64
            beta.kubernetes.io/os=linux
            kubernetes.io/arch=arm64
            kubernetes.io/os=linux"#]],
    );
}

#[test]
fn a_taint_that_evicts_is_for_a_node_that_is_not_well() {
    let check = |given, expected: Expect| expected.assert_eq(&text(evicting(&node(given), &now())));
    check("Ready=True", expect!["nothing"]);
    check("DiskPressure=True", expect!["nothing"]);
    check(
        "Ready=False taint=x/own:NoSchedule",
        expect![[r#"
            x/own:NoSchedule
            not-ready:NoExecute"#]],
    );
    check(
        "Ready=Unknown taint=not-ready:NoExecute",
        expect!["unreachable:NoExecute"],
    );
    check(
        "Ready=Unknown taint=unreachable:NoExecute",
        expect!["nothing"],
    );
}

#[test]
fn a_node_is_spared_the_taints_of_this_loop_alone() {
    let given = "taint=unreachable:NoExecute taint=unreachable:NoSchedule taint=x/own:NoExecute";
    expect![[r#"
        unreachable:NoSchedule
        x/own:NoExecute"#]]
    .assert_eq(&text(spared(&node(given))));
    expect!["nothing"].assert_eq(&text(spared(&node(""))));
}

#[test]
fn a_lost_node_has_unknown_conditions() {
    let given = node("Ready=True MemoryPressure=True DiskPressure=Unknown NetworkUnavailable=True");
    let lost = lost(&given, &now()).unwrap();
    let told: Vec<String> = nodes::conditions(&lost)
        .iter()
        .map(|one| {
            format!(
                "{}={} {}",
                one.type_,
                one.status,
                one.message.clone().unwrap_or_default()
            )
        })
        .collect();
    expect![[r#"
        Ready=Unknown Kubelet stopped posting node status.
        MemoryPressure=Unknown Kubelet stopped posting node status.
        DiskPressure=Unknown 
        NetworkUnavailable=True 
        PIDPressure=Unknown Kubelet never posted node status."#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(super::lost(&lost, &now()), None);
}
