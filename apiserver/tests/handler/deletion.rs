//! Grace, finalizers, preconditions, collections.

use super::site::{CONFIG_MAPS, config_map, site};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/kube-system/pods";

#[tokio::test]
async fn a_plain_object_goes_at_once_if_the_preconditions_hold() {
    let site = site().await;
    let created = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let wrong = json!({ "preconditions": { "uid": "other" } });
    assert!(
        site.delete(&path, &wrong)
            .await
            .failure()
            .starts_with("409 Conflict: ")
    );
    site.delete(&format!("{path}?dryRun=All"), &Value::Null)
        .await
        .ok();
    let right = json!({ "preconditions": { "uid": created["metadata"]["uid"] } });
    let answer = site.delete(&path, &right).await.ok();
    assert_eq!(answer["status"], "Success");
    assert_eq!(answer["details"]["name"], "a");
    assert_eq!(site.get(&path).await.status, 404);
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_taken_off() {
    let site = site().await;
    let mut held = config_map("a", "1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    site.post(CONFIG_MAPS, &held).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let ending = site.delete(&path, &Value::Null).await.ok();
    assert_eq!(
        ending["metadata"]["deletionTimestamp"],
        "2026-06-01T00:00:00Z"
    );
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = site.delete(&path, &Value::Null).await.ok();
    assert_eq!(again, ending);
    let off = json!({ "metadata": { "finalizers": null } });
    site.patch(&path, "merge-patch", &off).await.ok();
    assert_eq!(site.get(&path).await.status, 404);
}

#[tokio::test]
async fn propagation_becomes_a_finalizer() {
    let site = site().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        site.post(CONFIG_MAPS, &config_map(finalizer_name(policy), "1"))
            .await
            .ok();
        let path = format!("{CONFIG_MAPS}/{}", finalizer_name(policy));
        let options = json!({ "propagationPolicy": policy });
        let ending = site.delete(&path, &options).await.ok();
        assert_eq!(ending["metadata"]["finalizers"], json!([finalizer]));
    }
    let path = format!("{CONFIG_MAPS}/x?propagationPolicy=Never");
    assert!(
        site.delete(&path, &Value::Null)
            .await
            .status
            .is_client_error()
    );
}

fn finalizer_name(policy: &str) -> &'static str {
    if policy == "Orphan" { "b" } else { "a" }
}

#[tokio::test]
async fn a_bound_pod_gets_its_grace_which_can_only_be_shortened() {
    let site = site().await;
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    site.post(accounts, &account).await.ok();
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] },
    });
    site.post(PODS, &pod).await.ok();
    let path = format!("{PODS}/a");
    let left = |pod: &Value| pod["metadata"]["deletionGracePeriodSeconds"].clone();
    let ending = site.delete(&path, &Value::Null).await.ok();
    assert_eq!(left(&ending), 30);
    assert_eq!(
        ending["metadata"]["deletionTimestamp"],
        "2026-06-01T00:00:30Z"
    );
    let longer = json!({ "gracePeriodSeconds": 60 });
    assert_eq!(left(&site.delete(&path, &longer).await.ok()), 30);
    let shorter = json!({ "gracePeriodSeconds": 5 });
    assert_eq!(left(&site.delete(&path, &shorter).await.ok()), 5);
    site.delete(&format!("{path}?gracePeriodSeconds=0"), &Value::Null)
        .await
        .ok();
    assert_eq!(site.get(&path).await.status, 404);
}

#[tokio::test]
async fn the_grace_is_shortened_from_where_it_began_and_shown_at_the_end() {
    let site = site().await;
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    site.post(accounts, &account).await.ok();
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] },
    });
    let made = site.post(PODS, &pod).await.ok();
    let path = format!("{PODS}/a");
    site.delete(&path, &Value::Null).await.ok();
    let shorter = site
        .delete(&path, &json!({ "gracePeriodSeconds": 5 }))
        .await;
    let shorter = shorter.ok();
    let ends = &shorter["metadata"]["deletionTimestamp"];
    assert_eq!(ends, "2026-06-01T00:00:05Z");
    let gone = site
        .delete(&path, &json!({ "gracePeriodSeconds": 0 }))
        .await;
    let gone = gone.ok();
    assert_eq!(gone["kind"], "Pod", "a pod is shown as it was at the end");
    assert_eq!(gone["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(gone["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[tokio::test]
async fn options_are_checked_all_at_once_and_answered_in_upstreams_words() {
    let site = site().await;
    let made = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}/a");
    let cases = [
        (
            json!({ "preconditions": { "uid": "x" } }),
            format!(
                "409 Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the UID in the \
                 precondition (x) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            ),
        ),
        (
            json!({ "orphanDependents": true, "propagationPolicy": "X", "dryRun": ["x"] }),
            "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: [propagationPolicy: Invalid \
             value: \"X\": orphanDependents and deletionPropagation cannot be both set, \
             propagationPolicy: Unsupported value: \"X\": supported values: \"Foreground\", \
             \"Background\", \"Orphan\", \"nil\", dryRun: Unsupported value: [\"x\"]: supported \
             values: \"All\"]"
                .to_owned(),
        ),
        (
            json!({ "gracePeriodSeconds": "x" }),
            "400 BadRequest: json: cannot unmarshal string into Go struct field \
             DeleteOptions.gracePeriodSeconds of type int64"
                .to_owned(),
        ),
        (
            json!({ "kind": "Pod", "apiVersion": "v1" }),
            "400 BadRequest: no kind \"Pod\" is registered for version \"v1\" in scheme \
             \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
                .to_owned(),
        ),
    ];
    for (options, wanted) in cases {
        assert_eq!(site.delete(&path, &options).await.failure(), wanted);
    }
    let yaml = b"propagationPolicy: Orphan\n".to_vec();
    let answer = site.ask("DELETE", &path, "application/yaml", yaml).await;
    assert_eq!(answer.ok()["metadata"]["finalizers"], json!(["orphan"]));
    // The older way to ask for a cascade: accepted, and not over.
    let older = json!({ "orphanDependents": false });
    let mut held = config_map("b", "1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    site.post(CONFIG_MAPS, &held).await.ok();
    let answer = site.delete(&format!("{CONFIG_MAPS}/b"), &older).await;
    assert_eq!(answer.status, 202);
}

#[tokio::test]
async fn a_job_keeps_its_pods_unless_told_otherwise_and_says_so() {
    let site = site().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let containers = json!([{ "name": "c", "image": "i" }]);
    let spec = json!({ "restartPolicy": "Never", "containers": containers });
    for (name, options, finalizers) in [
        ("a", Value::Null, json!(["orphan"])),
        (
            "b",
            json!({ "propagationPolicy": "Foreground" }),
            json!(["foregroundDeletion"]),
        ),
    ] {
        let job = json!({
            "metadata": { "name": name }, "spec": { "template": { "spec": spec } },
        });
        site.post(jobs, &job).await.ok();
        let answer = site.delete(&format!("{jobs}/{name}"), &options).await;
        assert_eq!(answer.headers.contains_key("warning"), options.is_null());
        assert_eq!(answer.ok()["metadata"]["finalizers"], finalizers);
    }
}

#[tokio::test]
async fn a_collection_is_deleted_by_pages_and_in_a_dry_run_not_at_all() {
    let site = site().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for name in ["a", "b", "c"] {
        let secret = json!({ "metadata": { "name": name } });
        site.post(secrets, &secret).await.ok();
    }
    let count = async || {
        let list = site.get(secrets).await.ok();
        list["items"].as_array().unwrap().len()
    };
    let dry = site
        .delete(&format!("{secrets}?dryRun=All"), &Value::Null)
        .await;
    assert_eq!((dry.status.as_u16(), count().await), (200, 3));
    let page = site
        .delete(&format!("{secrets}?limit=2"), &Value::Null)
        .await
        .ok();
    assert_eq!(page["kind"], "SecretList");
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    assert_eq!(count().await, 1);
    let wrong = site
        .delete(&format!("{secrets}?continue=x"), &Value::Null)
        .await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn a_collection_loses_what_the_selector_chooses() {
    let site = site().await;
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut one = config_map(name, "1");
        one["metadata"]["labels"] = json!({ "l": label });
        site.post(CONFIG_MAPS, &one).await.ok();
    }
    let path = format!("{CONFIG_MAPS}?labelSelector=l%3Dx");
    let deleted = site.delete(&path, &Value::Null).await.ok();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 2);
    let left = site.get(CONFIG_MAPS).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_namespace_waits_for_its_finalizer_and_takes_nothing_new() {
    let site = site().await;
    let asked = json!({ "metadata": { "name": "team" } });
    site.post("/api/v1/namespaces", &asked).await.ok();
    let path = "/api/v1/namespaces/team";
    let ending = site.delete(path, &Value::Null).await.ok();
    assert_eq!(ending["status"]["phase"], "Terminating");
    // Nobody waits for its time to be over: others take it apart.
    assert!(ending["metadata"]["deletionTimestamp"].is_string());
    assert!(ending["metadata"]["deletionGracePeriodSeconds"].is_null());
    let inside = format!("{path}/configmaps");
    let refused = site.post(&inside, &config_map("a", "1")).await;
    assert_eq!(refused.status, 403);
    let mut finalized = site.get(path).await.ok();
    finalized["spec"]["finalizers"] = json!([]);
    site.put(&format!("{path}/finalize"), &finalized).await.ok();
    assert_eq!(site.get(path).await.status, 404);
    site.post("/api/v1/namespaces", &asked).await.ok();
    let other = json!({ "preconditions": { "uid": "x" } });
    let other = site.delete(path, &other).await;
    assert!(
        other
            .failure()
            .contains("namespaces \"team\": Precondition failed: UID in precondition: x, UID in")
    );
    let older = json!({ "orphanDependents": false });
    let first = site.delete(path, &older).await;
    assert_eq!(first.status, 202);
    assert_eq!(
        first.json()["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let again = json!({ "propagationPolicy": "Orphan" });
    let again = site.delete(path, &again).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.json()));
    let refused = site
        .delete("/api/v1/namespaces/default", &Value::Null)
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn an_eviction_deletes_a_pod_and_says_why() {
    let site = site().await;
    let namespace = "/api/v1/namespaces/default";
    let account = json!({ "metadata": { "name": "default" } });
    site.post(&format!("{namespace}/serviceaccounts"), &account)
        .await
        .ok();
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] },
    });
    let uid = site.post(&format!("{namespace}/pods"), &pod).await.ok()["metadata"]["uid"].clone();
    let path = format!("{namespace}/pods/a/eviction");
    let eviction = |options: Value| {
        json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": "a", "namespace": "default" }, "deleteOptions": options,
        })
    };
    let other = eviction(json!({ "preconditions": { "uid": "other" } }));
    assert_eq!(site.post(&path, &other).await.status, 409);
    let dry = eviction(json!({ "dryRun": ["All"] }));
    assert_eq!(site.post(&path, &dry).await.status, 201);
    let alive = site.get(&format!("{namespace}/pods/a")).await.ok();
    assert_eq!(alive["metadata"]["deletionTimestamp"], Value::Null);
    let wanted = eviction(json!({ "gracePeriodSeconds": 7, "preconditions": { "uid": uid } }));
    assert_eq!(site.post(&path, &wanted).await.status, 201);
    let ending = site.get(&format!("{namespace}/pods/a")).await.ok();
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 7);
    let conditions = ending["status"]["conditions"].as_array().unwrap();
    let reason = conditions
        .iter()
        .find(|one| one["type"] == "DisruptionTarget")
        .map(|one| one["reason"].as_str().unwrap());
    assert_eq!(reason, Some("EvictionByEvictionAPI"));
    let missing = format!("{namespace}/pods/b/eviction");
    let wrong = site.post(&missing, &wanted).await;
    assert_eq!(
        wrong.failure(),
        "400 BadRequest: name in URL does not match name in Eviction object"
    );
    let named = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "b" },
    });
    let missing = site.post(&missing, &named).await;
    assert_eq!(missing.failure(), "404 NotFound: pods \"b\" not found");
}
