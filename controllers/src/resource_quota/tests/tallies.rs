//! What quotas come to, without a cluster; and which changes matter.

use super::*;
use coracle_api::object::Object;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn quota(spec: Value, status: Value) -> Quota {
    Quota::of(&object(
        json!({ "metadata": { "name": "q" }, "spec": spec, "status": status }),
    ))
}

fn told(quotas: &[Quota], count: impl FnOnce(&mut Tally<'_>)) -> Vec<Option<String>> {
    let classes = DeviceClasses::default();
    let mut tally = Tally::new(quotas, &classes, 0);
    count(&mut tally);
    let statuses = tally.statuses();
    statuses
        .map(|status| status.map(|status| status.used.to_string()))
        .collect()
}

#[test]
fn each_quota_counts_what_is_in_its_scopes() {
    let scoped = |scope: &str| {
        quota(
            json!({ "hard": { "pods": "9" }, "scopes": [scope] }),
            json!({}),
        )
    };
    let quotas = [
        scoped("BestEffort"),
        scoped("NotBestEffort"),
        scoped("Terminating"),
    ];
    let pods = [
        object(pod("1")),
        object(pod("2")),
        object(json!({ "spec": {} })),
    ];
    let statuses = told(&quotas, |tally| {
        tally.begin(&Evaluator::Pods);
        tally.add(&Evaluator::Pods, &pods);
    });
    let expected = ["pods=1", "pods=2", "pods=0"];
    assert_eq!(statuses, expected.map(|text| Some(text.to_owned())));
}

#[test]
fn objects_that_are_only_counted_are_in_no_scope() {
    let hard = json!({ "secrets": "9", "count/secrets": "9" });
    let quotas = [
        quota(json!({ "hard": hard }), json!({})),
        quota(json!({ "hard": hard, "scopes": ["BestEffort"] }), json!({})),
    ];
    let secrets = Evaluator::of("", "secrets").unwrap();
    let statuses = told(&quotas, |tally| tally.add_count(&secrets, 3));
    let expected = ["count/secrets=3,secrets=3", "count/secrets=0,secrets=0"];
    assert_eq!(statuses, expected.map(|text| Some(text.to_owned())));
}

#[test]
fn what_nothing_counts_keeps_what_stands_there() {
    let status = |hard: Value, used: Value| json!({ "hard": hard, "used": used });
    let hard = json!({ "secrets": "9", "count/odd": "1" });
    let spec = json!({ "hard": hard });
    let secrets = Evaluator::of("", "secrets").unwrap();
    let used = json!({ "secrets": "1", "count/odd": "1" });
    let right = quota(spec.clone(), status(hard.clone(), used.clone()));
    let statuses = told(&[right], |tally| tally.add_count(&secrets, 1));
    assert_eq!(statuses, [None]);
    // A limit that is no more has no usage either.
    let more = json!({ "secrets": "1", "count/odd": "1", "pods": "3" });
    let left = quota(spec, status(hard, more));
    let statuses = told(&[left], |tally| tally.add_count(&secrets, 2));
    assert_eq!(statuses, [Some("count/odd=1,secrets=2".to_owned())]);
}

#[test]
fn charges_ask_for_no_count_and_everything_else_does() {
    let quota = |spec: Value, status: Value| -> ResourceQuota {
        serde_json::from_value(json!({ "spec": spec, "status": status })).unwrap()
    };
    let spec = |pods: &str| json!({ "hard": { "pods": pods } });
    let status = |used: &str| json!({ "hard": { "pods": "2" }, "used": { "pods": used } });
    let before = quota(spec("2"), status("0"));
    let changed = |after: ResourceQuota| triggers::quota_changed(&before, &after);
    assert!(!changed(quota(spec("2"), status("1"))));
    assert!(!changed(quota(spec("2000m"), status("1"))));
    assert!(changed(quota(spec("3"), status("0"))));
    assert!(changed(quota(
        spec("2"),
        json!({ "hard": { "pods": "1" }, "used": { "pods": "0" } })
    )));
    assert!(changed(quota(
        spec("2"),
        json!({ "hard": { "pods": "2" } })
    )));
}

#[test]
fn pods_matter_when_they_end_or_get_other_resources() {
    let pod = |value: Value| serde_json::from_value::<Pod>(value).unwrap();
    let plain = || json!({ "spec": { "containers": [] }, "status": { "phase": "Running" } });
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut after = plain();
        change(&mut after);
        triggers::pod_changed(&pod(plain()), &pod(after))
    };
    assert!(!changed(&|_| {}));
    assert!(!changed(&|pod| pod["status"]["podIP"] = "10.0.0.1".into()));
    assert!(changed(&|pod| pod["status"]["phase"] = "Failed".into()));
    assert!(changed(
        &|pod| pod["spec"]["activeDeadlineSeconds"] = 1.into()
    ));
    let pending = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    assert!(changed(&|pod| pod["status"]["conditions"] = pending.clone()));
    let with = |cpu: &str| {
        let status = json!([{
            "name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "resources": { "requests": { "cpu": cpu } },
        }]);
        let mut value = plain();
        value["status"]["containerStatuses"] = status;
        pod(value)
    };
    assert!(triggers::pod_changed(&with("1"), &with("2")));
    assert!(!triggers::pod_changed(&with("1"), &with("1")));
}
