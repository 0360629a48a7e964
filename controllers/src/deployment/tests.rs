//! A deployment and its sets in, the plan out, as text.
//!
//! `deployment replicas=N template=T [surge=N|N%] [unavailable=N|N%] [recreate] [paused]
//! [deadline=S] [history=N] [deleting] [selects_all]`, the same with `status` for what was
//! written before: `status [total=N] [updated=N] [ready=N] [available=N]
//! [progressing=REASON@AGE [of=T]]`. Then the sets, oldest first: `rs T size=N [pods=N] [available=N]
//! [revision=N] [desired=N] [max=N] [left]`. What is not said of pods is as many as the size.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::fixture_text::*;

mod convergence;

fn template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": name}]},
    })
}

fn deployment(words: &[&str]) -> Value {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 3,
            "annotations": {"team": "edge"}},
        "spec": {
            "replicas": number(words, "replicas").unwrap_or(1),
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(option(words, "template").unwrap_or("v1")),
            "revisionHistoryLimit": number(words, "history").unwrap_or(10),
            "progressDeadlineSeconds": number(words, "deadline").unwrap_or(600),
            "paused": option(words, "paused").is_some(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxSurge": int_or_percent(words, "surge", "25%"),
                "maxUnavailable": int_or_percent(words, "unavailable", "25%"),
            }},
        },
    });
    if option(words, "recreate").is_some() {
        value["spec"]["strategy"] = json!({"type": "Recreate"});
    }
    if option(words, "selects_all").is_some() {
        value["spec"]["selector"] = json!({});
    }
    if option(words, "deleting").is_some() {
        value["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    value
}

fn status_before(words: &[&str]) -> Value {
    let mut value = json!({
        "observedGeneration": 3,
        "replicas": number(words, "total").unwrap_or(0),
        "updatedReplicas": number(words, "updated").unwrap_or(0),
        "readyReplicas": number(words, "ready").unwrap_or(0),
        "availableReplicas": number(words, "available").unwrap_or(0),
    });
    if let Some((reason, age)) = option(words, "progressing").and_then(|text| text.split_once('@'))
    {
        let since = at(age.parse().unwrap());
        value["conditions"] = json!([{"type": "Progressing", "status": "True", "reason": reason,
            "lastUpdateTime": since, "lastTransitionTime": since}]);
    }
    if let Some(set) = option(words, "of") {
        let message = format!("ReplicaSet \"web-{set}\" has successfully progressed.");
        value["conditions"][0]["message"] = json!(message);
    }
    value
}

fn replica_set(name: &str, order: usize, words: &[&str]) -> ReplicaSet {
    let size = number(words, "size").unwrap_or(0);
    let mut annotations = serde_json::Map::new();
    annotations.insert("team".to_owned(), json!("edge"));
    for (option_name, annotation) in [
        ("revision", revision::REVISION),
        ("desired", revision::DESIRED_REPLICAS),
        ("max", revision::MAX_REPLICAS),
    ] {
        if let Some(text) = option(words, option_name) {
            annotations.insert(annotation.to_owned(), json!(text));
        }
    }
    let mut pods = template(name);
    pods["metadata"]["labels"]["pod-template-hash"] = json!(name);
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("web-{name}"), "namespace": "default", "uid": format!("uid-{name}"),
            "generation": 1, "creationTimestamp": at(1000 - order as i64),
            "annotations": annotations, "labels": {"app": "web", "pod-template-hash": name},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": "d", "controller": true}],
        },
        "spec": {"replicas": size, "template": pods,
            "selector": {"matchLabels": {"app": "web", "pod-template-hash": name}}},
        "status": {
            "replicas": number(words, "pods").unwrap_or(size),
            "readyReplicas": number(words, "available").unwrap_or(size),
            "availableReplicas": number(words, "available").unwrap_or(size),
            "observedGeneration": 1, "terminatingReplicas": 0,
        },
    }))
    .unwrap()
}

fn parse(text: &str) -> plan::Observed {
    let (mut value, mut sets, mut pods_left) = (Value::Null, Vec::new(), Vec::new());
    for (order, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["deployment", options @ ..] => value = deployment(options),
            ["status", options @ ..] => value["status"] = status_before(options),
            ["rs", name, options @ ..] => {
                sets.push(Arc::new(replica_set(name, order, options)));
                if option(options, "left").is_some() {
                    pods_left.push(format!("uid-{name}"));
                }
            }
            other => panic!("cannot read {other:?}"),
        }
    }
    plan::Observed {
        deployment: Arc::new(serde_json::from_value(value).unwrap()),
        sets,
        pods_left,
    }
}

/// The template's name, by which sets are told apart whatever their hash.
fn image(set: &ReplicaSet) -> String {
    let spec = set
        .spec
        .as_ref()
        .unwrap()
        .template
        .as_ref()
        .unwrap()
        .spec
        .as_ref()
        .unwrap();
    spec.containers[0].image.clone().unwrap()
}

fn annotation_text(set: &ReplicaSet) -> String {
    let word = |name: &str| {
        let full = format!("deployment.kubernetes.io/{name}");
        revision::annotation(set, &full).map(|value| format!(" {name}={value}"))
    };
    [
        "revision",
        "revision-history",
        "desired-replicas",
        "max-replicas",
    ]
    .into_iter()
    .filter_map(word)
    .collect()
}

fn describe(plan: &plan::Plan) -> String {
    let mut text = String::new();
    if plan.selects_all {
        writeln!(text, "selects all").unwrap();
    }
    if let Some(set) = &plan.create {
        writeln!(
            text,
            "create {} size={}{}",
            image(set),
            sets::size(set),
            annotation_text(set)
        )
        .unwrap();
    }
    for (old, new) in &plan.update {
        let sizes = match (sets::size(old), sets::size(new)) {
            (from, to) if from == to => String::new(),
            (from, to) => format!(" {from}->{to}"),
        };
        writeln!(text, "update {}{sizes}{}", image(new), annotation_text(new)).unwrap();
    }
    for set in &plan.delete {
        writeln!(text, "delete {}", image(set)).unwrap();
    }
    let status = plan.deployment.status.clone().unwrap_or_default();
    let count = |count: Option<i32>| count.unwrap_or(0);
    writeln!(
        text,
        "status total={} updated={} ready={} available={} unavailable={}",
        count(status.replicas),
        count(status.updated_replicas),
        count(status.ready_replicas),
        count(status.available_replicas),
        count(status.unavailable_replicas),
    )
    .unwrap();
    for condition in status.conditions.iter().flatten() {
        let reason = condition.reason.as_deref().unwrap_or_default();
        writeln!(text, "{} {} {reason}", condition.type_, condition.status).unwrap();
    }
    if let Requeue::After(wait) = plan.requeue {
        writeln!(text, "again in {} s", wait.as_secs()).unwrap();
    }
    text
}

fn check(text: &str, expected: Expect) {
    let plan = plan::plan(&parse(text), now());
    expected.assert_eq(&describe(&plan));
}

#[test]
fn the_first_set_gets_all_pods_at_once() {
    check(
        "deployment replicas=3 template=v1",
        expect![[r#"
        create v1 size=3 revision=1 desired-replicas=3 max-replicas=4
        status total=0 updated=0 ready=0 available=0 unavailable=3
        Progressing True NewReplicaSetCreated
        Available False MinimumReplicasUnavailable
        again in 601 s
    "#]],
    );
}

#[test]
fn a_finished_rollout_rests() {
    check(
        "deployment replicas=3 template=v1
         status total=3 updated=3 ready=3 available=3 progressing=NewReplicaSetAvailable@9999
         rs v1 size=3 revision=1 desired=3 max=4",
        expect![[r#"
            status total=3 updated=3 ready=3 available=3 unavailable=0
            Progressing True NewReplicaSetAvailable
            Available True MinimumReplicasAvailable
        "#]],
    );
}

/// As a loop leaves it that dies when it has made the new set.
#[test]
fn the_end_of_another_rollout_is_not_the_end_of_this_one() {
    let check = |of: &str, expected| {
        let text = "deployment replicas=2 template=v2 recreate
             status progressing=NewReplicaSetAvailable@9999 of=WHICH
             rs v1 size=0 revision=1 desired=2 max=2
             rs v2 size=2 pods=0 available=0 revision=2 desired=2 max=2";
        check(&text.replace("WHICH", of), expected);
    };
    check(
        "v1",
        expect![[r#"
            status total=0 updated=0 ready=0 available=0 unavailable=2
            Progressing True FoundNewReplicaSet
            Available False MinimumReplicasUnavailable
            again in 601 s
        "#]],
    );
    check(
        "v2",
        expect![[r#"
            status total=0 updated=0 ready=0 available=0 unavailable=2
            Progressing True NewReplicaSetAvailable
            Available False MinimumReplicasUnavailable
        "#]],
    );
}

#[test]
fn rolling_grows_the_new_one_within_the_surge() {
    check(
        "deployment replicas=4 template=v2 surge=1 unavailable=1
         status total=4 updated=4 ready=4 available=4 progressing=NewReplicaSetAvailable@9999
         rs v1 size=4 revision=1 desired=4 max=5",
        expect![[r#"
            create v2 size=1 revision=2 desired-replicas=4 max-replicas=5
            update v1 4->3 revision=1 desired-replicas=4 max-replicas=5
            status total=4 updated=0 ready=4 available=4 unavailable=0
            Progressing True NewReplicaSetCreated
            Available True MinimumReplicasAvailable
            again in 601 s
        "#]],
    );
    check(
        "deployment replicas=4 template=v2 surge=1 unavailable=1
         rs v1 size=3 revision=1 desired=4 max=5
         rs v2 size=1 available=0 revision=2 desired=4 max=5",
        expect![[r#"
            update v2 1->2 revision=2 desired-replicas=4 max-replicas=5
            status total=4 updated=1 ready=3 available=3 unavailable=2
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
}

#[test]
fn old_pods_go_only_as_far_as_enough_are_available() {
    check(
        "deployment replicas=4 template=v2 surge=1 unavailable=0
         rs v1 size=4 revision=1 desired=4 max=5
         rs v2 size=1 available=0 revision=2 desired=4 max=5",
        expect![[r#"
            status total=5 updated=1 ready=4 available=4 unavailable=1
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
    check(
        "deployment replicas=4 template=v2 surge=1 unavailable=0
         rs v1 size=4 revision=1 desired=4 max=5
         rs v2 size=1 revision=2 desired=4 max=5",
        expect![[r#"
            update v1 4->3 revision=1 desired-replicas=4 max-replicas=5
            status total=5 updated=1 ready=5 available=5 unavailable=0
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
}

#[test]
fn unhealthy_old_pods_go_first() {
    check(
        "deployment replicas=4 template=v3 surge=1 unavailable=1
         rs v1 size=2 revision=1 desired=4 max=5
         rs v2 size=2 available=0 revision=2 desired=4 max=5
         rs v3 size=1 revision=3 desired=4 max=5",
        expect![[r#"
            update v2 2->0 revision=2 desired-replicas=4 max-replicas=5
            status total=5 updated=1 ready=3 available=3 unavailable=0
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
}

#[test]
fn recreate_empties_the_old_before_it_makes_the_new() {
    check(
        "deployment replicas=2 template=v2 recreate
         rs v1 size=2 revision=1 desired=2 max=2",
        expect![[r#"
            update v1 2->0 revision=1 desired-replicas=2 max-replicas=2
            status total=2 updated=0 ready=2 available=2 unavailable=0
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
    check(
        "deployment replicas=2 template=v2 recreate
         rs v1 size=0 pods=0 revision=1 desired=2 max=2 left",
        expect![[r#"
            status total=0 updated=0 ready=0 available=0 unavailable=0
            Available False MinimumReplicasUnavailable
        "#]],
    );
    check(
        "deployment replicas=2 template=v2 recreate
         rs v1 size=0 revision=1 desired=2 max=2",
        expect![[r#"
            create v2 size=2 revision=2 desired-replicas=2 max-replicas=2
            status total=0 updated=0 ready=0 available=0 unavailable=2
            Progressing True NewReplicaSetCreated
            Available False MinimumReplicasUnavailable
            again in 601 s
        "#]],
    );
}

#[test]
fn a_rollback_raises_the_revision_and_remembers_the_old_one() {
    check(
        "deployment replicas=2 template=v1 surge=1 unavailable=0
         rs v1 size=0 revision=1 desired=2 max=3
         rs v2 size=2 revision=2 desired=2 max=3",
        expect![[r#"
            update v1 0->1 revision=3 revision-history=1 desired-replicas=2 max-replicas=3
            status total=2 updated=0 ready=2 available=2 unavailable=1
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
}

#[test]
fn a_change_of_size_alone_moves_no_rollout() {
    check(
        "deployment replicas=5 template=v1
         rs v1 size=3 revision=1 desired=3 max=4",
        expect![[r#"
            update v1 3->5 revision=1 desired-replicas=5 max-replicas=7
            status total=3 updated=3 ready=3 available=3 unavailable=2
            Progressing True FoundNewReplicaSet
            Available False MinimumReplicasUnavailable
        "#]],
    );
}

#[test]
fn a_change_of_size_in_a_rollout_is_shared_out() {
    check(
        "deployment replicas=20 template=v2 surge=3 unavailable=2
         rs v1 size=8 revision=1 desired=10 max=13
         rs v2 size=5 available=0 revision=2 desired=10 max=13",
        expect![[r#"
            update v1 8->14 revision=1 desired-replicas=20 max-replicas=23
            update v2 5->9 revision=2 desired-replicas=20 max-replicas=23
            status total=13 updated=5 ready=8 available=8 unavailable=15
            Progressing True FoundNewReplicaSet
            Available False MinimumReplicasUnavailable
        "#]],
    );
    check(
        "deployment replicas=5 template=v2 surge=0 unavailable=1
         rs v1 size=8 revision=1 desired=12 max=12
         rs v2 size=4 available=0 revision=2 desired=12 max=12",
        expect![[r#"
            update v1 8->3 revision=1 desired-replicas=5 max-replicas=5
            update v2 4->2 revision=2 desired-replicas=5 max-replicas=5
            status total=12 updated=4 ready=8 available=8 unavailable=0
            Progressing True FoundNewReplicaSet
            Available True MinimumReplicasAvailable
        "#]],
    );
}

#[test]
fn a_paused_deployment_scales_and_does_not_roll() {
    check(
        "deployment replicas=3 template=v2 paused
         status total=3 progressing=NewReplicaSetAvailable@50
         rs v1 size=3 revision=1 desired=3 max=4",
        expect![[r#"
            status total=3 updated=0 ready=3 available=3 unavailable=0
            Progressing Unknown DeploymentPaused
            Available True MinimumReplicasAvailable
        "#]],
    );
}

#[test]
fn resuming_starts_the_deadline_over() {
    check(
        "deployment replicas=1 template=v2
         status total=1 progressing=DeploymentPaused@99999
         rs v1 size=1 revision=1 desired=1 max=2",
        expect![[r#"
            create v2 size=1 revision=2 desired-replicas=1 max-replicas=2
            status total=1 updated=0 ready=1 available=1 unavailable=1
            Available True MinimumReplicasAvailable
            Progressing True ReplicaSetUpdated
            again in 601 s
        "#]],
    );
}

#[test]
fn a_rollout_without_progress_runs_out_of_time() {
    check(
        "deployment replicas=1 template=v2 deadline=60
         status total=2 updated=1 ready=1 available=1 progressing=ReplicaSetUpdated@50
         rs v1 size=1 revision=1 desired=1 max=2
         rs v2 size=1 available=0 revision=2 desired=1 max=2",
        expect![[r#"
            status total=2 updated=1 ready=1 available=1 unavailable=1
            Progressing True ReplicaSetUpdated
            Available True MinimumReplicasAvailable
            again in 11 s
        "#]],
    );
    check(
        "deployment replicas=1 template=v2 deadline=60
         status total=2 updated=1 ready=1 available=1 progressing=ReplicaSetUpdated@61
         rs v1 size=1 revision=1 desired=1 max=2
         rs v2 size=1 available=0 revision=2 desired=1 max=2",
        expect![[r#"
            status total=2 updated=1 ready=1 available=1 unavailable=1
            Available True MinimumReplicasAvailable
            Progressing False ProgressDeadlineExceeded
        "#]],
    );
}

#[test]
fn old_revisions_beyond_the_limit_are_deleted_once_they_are_empty() {
    check(
        "deployment replicas=1 template=v4 history=1
         status total=1 updated=1 ready=1 available=1 progressing=NewReplicaSetAvailable@9
         rs v1 size=0 revision=1
         rs v2 size=0 pods=1 revision=2
         rs v3 size=0 revision=3
         rs v4 size=1 revision=4 desired=1 max=2",
        expect![[r#"
            delete v1
            status total=2 updated=1 ready=1 available=1 unavailable=0
            Progressing True NewReplicaSetAvailable
            Available True MinimumReplicasAvailable
        "#]],
    );
}

#[test]
fn what_is_being_deleted_or_selects_everything_is_left_alone() {
    check(
        "deployment replicas=3 template=v2 deleting
         rs v1 size=1 revision=1 desired=1 max=2",
        expect![[r#"
            status total=1 updated=0 ready=1 available=1 unavailable=0
            Available False MinimumReplicasUnavailable
        "#]],
    );
    check(
        "deployment replicas=3 selects_all",
        expect![[r#"
        selects all
        status total=0 updated=0 ready=0 available=0 unavailable=0
    "#]],
    );
}

#[test]
fn limits_are_rounded_up_for_surge_and_down_for_unavailability() {
    let limits = |options: &str| {
        let text = format!("deployment {options}");
        let deployment = parse(&text).deployment;
        (
            spec::max_surge(&deployment),
            spec::max_unavailable(&deployment),
        )
    };
    assert_eq!(limits("replicas=10"), (3, 2));
    assert_eq!(limits("replicas=1"), (1, 0));
    assert_eq!(limits("replicas=3 surge=0 unavailable=10%"), (0, 1));
    assert_eq!(limits("replicas=2 surge=0 unavailable=5"), (0, 2));
    assert_eq!(limits("replicas=0 surge=1 unavailable=1"), (1, 0));
    assert_eq!(limits("replicas=5 recreate"), (0, 0));
}

#[test]
fn a_template_is_the_same_whatever_its_hash_label_and_empty_lists() {
    let deployment = parse("deployment template=v1").deployment;
    let same = replica_set("v1", 0, &[]);
    assert!(template::is_new(&deployment, &same));
    assert!(!template::is_new(&deployment, &replica_set("v2", 0, &[])));
    let mut empty = same;
    let pods = empty.spec.as_mut().unwrap().template.as_mut().unwrap();
    pods.spec.as_mut().unwrap().tolerations = Some(Vec::new());
    assert!(template::is_new(&deployment, &empty));
}

#[test]
fn hashes_are_stable_safe_and_depend_on_collisions() {
    let pods = |name| serde_json::from_value(template(name)).unwrap();
    let (one, other) = (
        template::hash(&pods("v1"), None),
        template::hash(&pods("v2"), None),
    );
    assert_ne!(one, other);
    assert_eq!(one, template::hash(&pods("v1"), None));
    assert_ne!(one, template::hash(&pods("v1"), Some(1)));
    assert!(
        one.len() >= 5
            && one
                .chars()
                .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
    );
    assert_eq!(template::set_name("web", "abc"), "web-abc");
    assert_eq!(template::set_name(&"x".repeat(300), "abc").len(), 253);
}
