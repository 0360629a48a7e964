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
        warnings: Warnings::default(),
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

#[tokio::test]
async fn an_account_may_keep_its_pods_to_its_own_secrets() {
    let account = json!({
        "metadata": {
            "name": "default",
            "namespace": "web",
            "annotations": { "kubernetes.io/enforce-mountable-secrets": "true" },
        },
        "secrets": [{ "name": "own" }],
        "imagePullSecrets": [{ "name": "pull" }],
    });
    let bench = bench(vec![]);
    bench.view.put("serviceaccounts", account);
    let from = |field: &str, secret: &str| {
        let variable = json!({ "name": "V", "valueFrom": { "secretKeyRef": { "name": secret } } });
        let source = json!({ "secretRef": { "name": secret } });
        let value = if field == "env" { variable } else { source };
        json!({ "name": "c", field: [value] })
    };
    let fine = json!({
        "containers": [from("env", "own"), from("envFrom", "own")],
        "volumes": [{ "name": "v", "secret": { "secretName": "own" } }],
    });
    assert!(create(&bench, pod(fine)).await.is_ok());
    let refused = async |spec: Value| {
        let refusal = create(&bench, pod(spec)).await.unwrap_err();
        refusal.replace("pods \"p\" is forbidden: ", "")
    };
    let volume = json!([{ "name": "v", "secret": { "secretName": "other" } }]);
    expect![[r#"volume with secret.secretName="other" is not allowed because service account default does not reference that secret"#]]
        .assert_eq(&refused(json!({ "volumes": volume })).await);
    expect![[r#"container c with envVar V referencing secret.secretName="other" is not allowed because service account default does not reference that secret"#]]
        .assert_eq(&refused(json!({ "containers": [from("env", "other")] })).await);
    expect![[r#"init container c with envFrom referencing secret.secretName="other" is not allowed because service account default does not reference that secret"#]]
        .assert_eq(&refused(json!({ "initContainers": [from("envFrom", "other")] })).await);
    expect![[r#"imagePullSecrets[0].name="other" is not allowed because service account default does not reference that imagePullSecret"#]]
        .assert_eq(&refused(json!({ "imagePullSecrets": [{ "name": "other" }] })).await);
    let jane = User::named("jane");
    let old = Object::from_value(pod(json!({}))).unwrap();
    let asked = Asked {
        old: Some(&old),
        ..as_user(&jane, "UPDATE pods/ephemeralcontainers web p")
    };
    let debug = json!({
        "serviceAccountName": "default",
        "ephemeralContainers": [from("env", "other")],
    });
    let refusal = bench.admit(&asked, Some(pod(debug))).await.unwrap_err();
    expect![[r#"pods "p" is forbidden: ephemeral container c with envVar V referencing secret.secretName="other" is not allowed because service account default does not reference that secret"#]]
        .assert_eq(&refusal);
}

#[tokio::test]
async fn containers_find_the_token_of_their_account() {
    let bench = bench(vec![]);
    let spec = json!({
        "initContainers": [{ "name": "i" }],
        "containers": [
            { "name": "a", "volumeMounts": [{ "name": "own", "mountPath": "/own" }] },
            { "name": "b", "volumeMounts": [{
                "name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }] },
        ],
        "volumes": [{ "name": "own", "emptyDir": {} }],
    });
    let made = create(&bench, pod(spec.clone())).await.unwrap();
    let volume = &made["spec"]["volumes"][1];
    let name = volume["name"].as_str().unwrap();
    assert!(
        name.starts_with("kube-api-access-") && name.len() == 21,
        "{name}"
    );
    expect![[r#"{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}"#]]
        .assert_eq(&volume["projected"].to_string());
    let mounts = |pointer: &str| {
        let container = made["spec"].pointer(pointer).unwrap();
        let mounts = container["volumeMounts"].as_array().unwrap().iter();
        mounts
            .map(|mount| mount["name"].as_str().unwrap() == name)
            .collect::<Vec<_>>()
    };
    assert_eq!(mounts("/initContainers/0"), [true]);
    assert_eq!(mounts("/containers/0"), [false, true]);
    assert_eq!(mounts("/containers/1"), [false], "something else is there");
    assert_eq!(
        made["spec"]["containers"][0]["volumeMounts"][1]["readOnly"],
        true
    );

    let mut known = spec.clone();
    known["volumes"] = json!([{ "name": "kube-api-access-mine", "emptyDir": {} }]);
    let made = create(&bench, pod(known)).await.unwrap();
    assert_eq!(made["spec"]["volumes"].as_array().unwrap().len(), 1);
    let mount = &made["spec"]["initContainers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], "kube-api-access-mine");
}

#[tokio::test]
async fn pods_and_accounts_may_do_without_a_token() {
    let has_token = |made: &Value| made["spec"].get("volumes").is_some();
    for (of_account, of_pod, expected) in [
        (Value::Null, Value::Null, true),
        (json!(false), Value::Null, false),
        (json!(false), json!(true), true),
        (json!(true), json!(false), false),
    ] {
        let bench = bench(vec![]);
        let account = json!({
            "metadata": { "name": "default", "namespace": "web" },
            "automountServiceAccountToken": of_account,
        });
        bench.view.put("serviceaccounts", account);
        let spec = json!({
            "automountServiceAccountToken": of_pod,
            "containers": [{ "name": "a" }],
        });
        let made = create(&bench, pod(spec)).await.unwrap();
        assert_eq!(has_token(&made), expected, "{made}");
    }
}
