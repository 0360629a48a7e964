//! What is made, brought up to date and taken away at a start.

use super::*;

#[test]
fn a_new_cluster_gets_all_and_an_old_one_nothing() {
    assert_eq!(plan(&[], None).len(), local().count());
    let all: Vec<Object> = local().collect();
    assert_eq!(plan(&all, None), []);
}

#[test]
fn only_what_bears_the_label_is_looked_after() {
    let mut all: Vec<Object> = local().collect();
    all[0].set(&["spec", "versionPriority"], 7.into());
    all[1].set(&["spec", "versionPriority"], 7.into());
    all[1].remove(&["metadata", "labels"]);
    let mut old = all[2].clone();
    old.set(&["metadata", "name"], "v1beta1.apps".into());
    let mut users = old.clone();
    users.set(&["metadata", "name"], "v1.acme.io".into());
    users.set(&["metadata", "labels", MANAGED], "true".into());
    let name = all[0].name().to_owned();
    all.extend([old.clone(), users]);
    let steps = plan(&all, None);
    let [Step::Update(updated), Step::Delete(gone)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(updated.name(), name);
    assert_eq!(*gone, old);
}

#[test]
fn a_group_that_is_left_out_has_none_and_loses_its_own() {
    let all: Vec<Object> = local().collect();
    let steps = plan(&all, Some("metrics.k8s.io"));
    let [Step::Delete(gone)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(gone.name(), "v1beta1.metrics.k8s.io");
    let rest: Vec<Object> = all.iter().filter(|one| *one != gone).cloned().collect();
    assert_eq!(plan(&rest, Some("metrics.k8s.io")), []);
}

#[test]
fn metrics_that_were_left_to_another_server_stay_with_it() {
    let mut all: Vec<Object> = local().collect();
    let name = "v1beta1.metrics.k8s.io";
    let metrics = all.iter_mut().find(|one| one.name() == name).unwrap();
    let service = serde_json::json!({ "namespace": "kube-system", "name": "metrics-server" });
    metrics.set(&["spec", "service"], service.clone());
    assert_eq!(plan(&all, None), []);
    assert_eq!(plan(&all, Some("metrics.k8s.io")), []);
    // What is this server's alone can always be mended.
    let apps = all.iter_mut().find(|one| one.name() == "v1.apps").unwrap();
    apps.set(&["spec", "service"], service);
    assert_eq!(plan(&all, None).len(), 1);
}
