//! What is filled into a pod, and which pods are refused.

use super::*;
use expect_test::{Expect, expect};

fn pod(spec: Value) -> Value {
    json!({ "metadata": { "name": "p", "namespace": "web" }, "spec": spec })
}

async fn create(bench: &Bench, pod: Value) -> Result<Value, String> {
    let jane = User::named("jane");
    bench
        .admit(&as_user(&jane, "CREATE pods web"), Some(pod))
        .await
}

async fn check(classes: Vec<Value>, spec: Value, expected: Expect) {
    let bench = bench(
        classes
            .into_iter()
            .map(|class| ("priorityclasses", class))
            .collect(),
    );
    let text = match create(&bench, pod(spec)).await {
        Ok(pod) => {
            let spec = &pod["spec"];
            format!(
                "{} {} {}",
                spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]
            )
        }
        Err(message) => message,
    };
    expected.assert_eq(&text);
}

fn class(name: &str, value: i64, default: bool) -> Value {
    json!({
        "metadata": { "name": name },
        "value": value,
        "globalDefault": default,
        "preemptionPolicy": "Never",
    })
}

#[tokio::test]
async fn a_plain_pod_is_filled_in() {
    let pod = create(&bench(vec![]), pod(json!({}))).await.unwrap();
    expect![[r#"
        {
          "preemptionPolicy": "PreemptLowerPriority",
          "priority": 0,
          "serviceAccount": "default",
          "serviceAccountName": "default",
          "tolerations": [
            {
              "effect": "NoExecute",
              "key": "node.kubernetes.io/not-ready",
              "operator": "Exists",
              "tolerationSeconds": 300
            },
            {
              "effect": "NoExecute",
              "key": "node.kubernetes.io/unreachable",
              "operator": "Exists",
              "tolerationSeconds": 300
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&pod["spec"]).unwrap());
}

#[tokio::test]
async fn the_priority_class_gives_the_number() {
    let classes = || vec![class("high", 1000, false)];
    check(
        classes(),
        json!({ "priorityClassName": "high" }),
        expect![[r#""high" 1000 "Never""#]],
    )
    .await;
    check(
        classes(),
        json!({ "priorityClassName": "gone" }),
        expect![[r#"pods "p" is forbidden: no PriorityClass with name gone was found"#]],
    )
    .await;
    check(
        classes(),
        json!({ "priorityClassName": "high", "priority": 5 }),
        expect![[r#"pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name"#]],
    )
    .await;
    check(
        classes(),
        json!({ "priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority" }),
        expect![[r#"pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name"#]],
    )
    .await;
    check(
        vec![class("high", 1000, false), class("usual", 7, true)],
        json!({}),
        expect![[r#""usual" 7 "Never""#]],
    )
    .await;
}

#[tokio::test]
async fn only_one_class_is_the_default() {
    let bench = bench(vec![("priorityclasses", class("usual", 7, true))]);
    let jane = User::named("jane");
    let second = Some(class("other", 8, true));
    let refused = bench
        .admit(&as_user(&jane, "CREATE priorityclasses -"), second)
        .await;
    assert_eq!(
        refused.unwrap_err(),
        "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is \
         already marked as default. Only one default can exist"
    );
    let same = Some(class("usual", 7, true));
    let asked = as_user(&jane, "UPDATE priorityclasses - usual");
    assert!(bench.admit(&asked, same).await.is_ok());
}

#[tokio::test]
async fn own_tolerations_stay() {
    let own = json!({ "tolerations": [{ "operator": "Exists" }] });
    let kept = create(&bench(vec![]), pod(own.clone())).await.unwrap();
    assert_eq!(kept["spec"]["tolerations"], own["tolerations"]);
    let short = json!({ "tolerations": [{
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 5,
    }] });
    let mended = create(&bench(vec![]), pod(short)).await.unwrap();
    let seconds: Vec<i64> = mended["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["tolerationSeconds"].as_i64().unwrap())
        .collect();
    assert_eq!(seconds, [5, 300]);
}

#[tokio::test(start_paused = true)]
async fn the_service_account_must_be_there() {
    let bench = bench(vec![]);
    let refused = create(&bench, pod(json!({ "serviceAccountName": "robot" }))).await;
    assert_eq!(
        refused.unwrap_err(),
        "pods \"p\" is forbidden: error looking up service account web/robot: serviceaccount \
         \"robot\" not found"
    );
    let robot = json!({
        "metadata": { "name": "robot", "namespace": "web" },
        "imagePullSecrets": [{ "name": "registry" }],
    });
    bench.view.put("serviceaccounts", robot);
    let made = create(&bench, pod(json!({ "serviceAccountName": "robot" })))
        .await
        .unwrap();
    assert_eq!(
        made["spec"]["imagePullSecrets"],
        json!([{ "name": "registry" }])
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_default_account_of_a_new_namespace() {
    let bench = bench(vec![]);
    bench
        .view
        .put("namespaces", json!({ "metadata": { "name": "fresh" } }));
    let jane = User::named("jane");
    let asked = as_user(&jane, "CREATE pods fresh");
    let comes = async {
        tokio::time::sleep(std::time::Duration::from_millis(450)).await;
        let account = json!({ "metadata": { "name": "default", "namespace": "fresh" } });
        bench.view.put("serviceaccounts", account);
    };
    let (made, ()) = tokio::join!(bench.admit(&asked, Some(pod(json!({})))), comes);
    assert!(made.is_ok());
    bench
        .view
        .put("namespaces", json!({ "metadata": { "name": "never" } }));
    let asked = as_user(&jane, "CREATE pods never");
    assert!(bench.admit(&asked, Some(pod(json!({})))).await.is_err());
}

#[tokio::test]
async fn an_update_keeps_the_priority_it_does_not_mention() {
    let bench = bench(vec![]);
    let jane = User::named("jane");
    let old =
        Object::from_value(pod(json!({ "priority": 9, "preemptionPolicy": "Never" }))).unwrap();
    let asked = Asked {
        user: &jane,
        text: "UPDATE pods web p",
        old: Some(&old),
    };
    let new = bench.admit(&asked, Some(pod(json!({})))).await.unwrap();
    assert_eq!(new["spec"]["priority"], 9);
    assert_eq!(new["spec"]["preemptionPolicy"], "Never");
}

#[tokio::test]
async fn a_mirror_pod_refers_to_nothing() {
    let mirror = |spec: Value| {
        let mut pod = pod(spec);
        pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
        pod
    };
    let bench = bench(vec![]);
    let kept = create(&bench, mirror(json!({}))).await.unwrap();
    assert!(kept["spec"].get("serviceAccountName").is_none());
    for spec in [
        json!({ "serviceAccountName": "default" }),
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s" } }] }),
        json!({ "volumes": [{ "projected": { "sources": [{ "serviceAccountToken": {} }] } }] }),
    ] {
        assert!(
            create(&bench, mirror(spec.clone())).await.is_err(),
            "{spec}"
        );
    }
}
