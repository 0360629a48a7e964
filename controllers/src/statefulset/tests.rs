//! A set, its pods and claims in; steps in order and the status out, as text.
//!
//! `sts replicas=N [parallel] [start=N] [partition=N|unsaid] [unavailable=N|N%] [on_delete]
//! [min_ready=S] [claims=A,B] [scaled] [deleted] [deleting] [was_current=N]`; `scaled` and
//! `deleted` are when claims go. Then a line for each pod, `pod NAME [old] [ready[=SECONDS]]
//! [pending|failed|succeeded] [deleting] [orphan|stranger|unselected|unlabeled]`, and for each
//! claim, `claim NAME [set|pod=NAME|stale=NAME|other|plain] [going]`: who owns it.
//! Pods are at the new revision, running and not ready, if not told else.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::plan::{Plan, Step};
use super::*;
use crate::fixture_text::*;

mod convergence;
mod identities;
mod ownership_of_claims;
mod statuses;
mod troubled;
mod whole;

struct Fixture {
    set: StatefulSet,
    pods: Vec<Arc<Pod>>,
    claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
}

fn set(words: &[&str]) -> StatefulSet {
    let has = |name| option(words, name).is_some();
    let names = option(words, "claims").unwrap_or("").split(',');
    let claims = names.filter(|name| !name.is_empty()).map(|name| {
        json!({"metadata": {"name": name, "labels": {"tier": "gold"}},
               "spec": {"accessModes": ["ReadWriteOnce"]}})
    });
    let policy = |name| if has(name) { "Delete" } else { "Retain" };
    let mut rolling = json!({ "partition": number(words, "partition").unwrap_or(0) });
    if has("unavailable") {
        rolling["maxUnavailable"] = int_or_percent(words, "unavailable", "");
    }
    let strategy = if has("on_delete") {
        json!({"type": "OnDelete"})
    } else if option(words, "partition") == Some("unsaid") {
        json!({"type": "RollingUpdate"})
    } else {
        json!({"type": "RollingUpdate", "rollingUpdate": rolling})
    };
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "sts", "generation": 3},
        "spec": {
            "replicas": number(words, "replicas"),
            "minReadySeconds": number(words, "min_ready").unwrap_or(0),
            "podManagementPolicy": if has("parallel") { "Parallel" } else { "OrderedReady" },
            "serviceName": "web-peers",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("new"),
            "updateStrategy": strategy,
            "persistentVolumeClaimRetentionPolicy":
                {"whenScaled": policy("scaled"), "whenDeleted": policy("deleted")},
            "volumeClaimTemplates": claims.collect::<Vec<_>>(),
        },
        "status": {"replicas": 0, "currentReplicas": number(words, "was_current").unwrap_or(0)},
    });
    if let Some(start) = number(words, "start") {
        value["spec"]["ordinals"] = json!({ "start": start });
    }
    if has("deleting") {
        value["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    serde_json::from_value(value).unwrap()
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}, "annotations": {"team": "blue"}},
           "spec": {"containers": [{"name": "c", "image": image}],
                    "volumes": [{"name": "scratch", "emptyDir": {}}]}})
}

fn pod(name: &str, words: &[&str], claims: &[String]) -> Arc<Pod> {
    let phases = ["pending", "succeeded", "failed"];
    let phase = phases.iter().find(|phase| words.contains(phase));
    let phase = phase.unwrap_or(&"running");
    let phase = format!("{}{}", phase[..1].to_uppercase(), &phase[1..]);
    let ordinal = name.rsplit('-').next().unwrap();
    let volumes = claims.iter().map(|claim| {
        json!({"name": claim,
               "persistentVolumeClaim": {"claimName": format!("{claim}-web-{ordinal}")}})
    });
    let mut value = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "labels": {
                "app": "web",
                "controller-revision-hash": if words.contains(&"old") { "old" } else { "new" },
                "statefulset.kubernetes.io/pod-name": name,
            },
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
                "uid": "sts", "controller": true}],
        },
        "spec": {"containers": [], "volumes": volumes.collect::<Vec<_>>()},
        "status": {"phase": phase},
    });
    if let Some(ready) = option(words, "ready") {
        let since = ready.parse().unwrap_or(1000);
        value["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(since)}]);
    }
    let meta = &mut value["metadata"];
    for word in words {
        match *word {
            "orphan" => meta["ownerReferences"] = json!([]),
            "stranger" => meta["ownerReferences"][0]["uid"] = json!("other"),
            "unselected" => meta["labels"]["app"] = json!("db"),
            "unlabeled" => meta["labels"] = json!({"app": "web"}),
            "deleting" => meta["deletionTimestamp"] = json!(at(0)),
            _ => {}
        }
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

fn claim_object(name: &str, words: &[&str]) -> Arc<PersistentVolumeClaim> {
    let owner = |kind: &str, name: &str, uid: &str, controller: bool| {
        let version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid,
               "controller": controller, "blockOwnerDeletion": true})
    };
    let owners = words.iter().filter_map(|word| match word.split_once('=') {
        Some(("pod", pod)) => Some(owner("Pod", pod, &format!("uid-{pod}"), true)),
        Some(("stale", pod)) => Some(owner("Pod", pod, "uid-before", true)),
        None if *word == "set" => Some(owner("StatefulSet", "web", "sts", true)),
        None if *word == "plain" => Some(owner("StatefulSet", "web", "sts", false)),
        None if *word == "other" => Some(owner("Database", "db", "db", true)),
        _ => None,
    });
    let mut value = json!({"metadata": {"name": name, "namespace": "default",
                           "ownerReferences": owners.collect::<Vec<_>>()}});
    if words.contains(&"going") {
        value["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

fn parse(text: &str) -> Fixture {
    let mut fixture = Fixture {
        set: StatefulSet::default(),
        pods: Vec::new(),
        claims: BTreeMap::new(),
    };
    let mut claims: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["sts", options @ ..] => {
                fixture.set = set(options);
                let names = option(options, "claims").unwrap_or("").split(',');
                let names = names.filter(|name| !name.is_empty());
                claims = names.map(str::to_owned).collect();
            }
            ["pod", name, options @ ..] => fixture.pods.push(pod(name, options, &claims)),
            ["claim", name, options @ ..] => {
                let claim = claim_object(name, options);
                fixture.claims.insert((*name).to_owned(), claim);
            }
            other => panic!("cannot read {other:?}"),
        }
    }
    fixture
}

fn plan_of(fixture: &Fixture) -> (plan::Members, Plan) {
    let (spec, selector) = selected(&fixture.set).unwrap();
    let members = plan::members(&fixture.set, &selector, &fixture.pods);
    let old = serde_json::from_value(template("old")).unwrap();
    let find = |name: &str| fixture.claims.get(name).cloned();
    let plan = plan::plan(&plan::Observed {
        set: &fixture.set,
        spec,
        current: Revision {
            name: "old",
            template: &old,
        },
        update: Revision {
            name: "new",
            template: &spec.template,
        },
        pods: &members.pods,
        find_claim: &find,
        now: now(),
    });
    (members, plan)
}

fn name(object: &impl kube::Resource) -> &str {
    object.meta().name.as_deref().unwrap()
}

fn said_of(claims: &claims::Claims) -> String {
    let mut said = String::new();
    for claim in &claims.create {
        said += &format!(" +{}", name(claim));
    }
    for claim in &claims.going {
        said += &format!(" await:{claim}");
    }
    for (claim, owners) in &claims.own {
        let owners: Vec<_> = owners.iter().map(|one| one.uid.as_str()).collect();
        said += &format!(" {}->[{}]", name(&**claim), owners.join(","));
    }
    for claim in &claims.conflicting {
        said += &format!(" conflict:{claim}");
    }
    said
}

fn said_of_step(step: &Step) -> String {
    match step {
        Step::Create { pod, claims } => {
            let revision = identity::revision_of(pod);
            format!("create {}@{revision}{}", name(&**pod), said_of(claims))
        }
        Step::Keep {
            pod,
            mended,
            claims,
            told,
        } => {
            let verb = if mended.is_some() { "mend" } else { "keep" };
            let told = if *told { " told" } else { "" };
            format!("{verb} {}{}{told}", name(&**pod), said_of(claims))
        }
        Step::Delete(pod) => format!("delete {}", name(&**pod)),
    }
}

fn check(text: &str, expected: Expect) {
    let (members, plan) = plan_of(&parse(text));
    let mut said = Vec::new();
    said.extend(
        members
            .adopt
            .iter()
            .map(|pod| format!("adopt {}", name(&**pod))),
    );
    said.extend(
        members
            .release
            .iter()
            .map(|pod| format!("release {}", name(&**pod))),
    );
    said.extend(plan.phases.iter().flatten().map(said_of_step));
    said.extend(
        plan.outdated
            .iter()
            .map(|pod| format!("outdated {}", name(&**pod))),
    );
    expected.assert_eq(&said.join(", "));
}

#[test]
fn in_order_each_pod_waits_for_the_one_before() {
    check("sts replicas=3", expect!["create web-0@new"]);
    check("sts replicas=3\npod web-0 pending", expect![""]);
    check("sts replicas=3\npod web-0", expect![""]);
    check(
        "sts replicas=3\npod web-0 ready",
        expect!["create web-1@new"],
    );
    check(
        "sts replicas=3
         pod web-0 ready
         pod web-1 ready deleting",
        expect![""],
    );
    check(
        "sts replicas=3
         pod web-1 ready",
        expect!["create web-0@new"],
    );
}

#[test]
fn in_parallel_nothing_waits() {
    check(
        "sts replicas=4 parallel
         pod web-1 pending
         pod web-2 ready deleting",
        expect!["create web-0@new, create web-3@new"],
    );
    check(
        "sts replicas=1 parallel
         pod web-0 pending
         pod web-2
         pod web-10 deleting
         pod web-9 ready",
        expect!["delete web-9, delete web-2"],
    );
}

#[test]
fn a_pod_counts_once_it_was_ready_long_enough() {
    check(
        "sts replicas=2 min_ready=30\npod web-0 ready=29",
        expect![""],
    );
    check(
        "sts replicas=2 min_ready=30\npod web-0 ready=30",
        expect!["create web-1@new"],
    );
}

#[test]
fn finished_pods_are_deleted_and_made_again() {
    check(
        "sts replicas=3
         pod web-0 failed
         pod web-1 succeeded",
        expect!["delete web-0"],
    );
    check("sts replicas=3\npod web-0 failed deleting", expect![""]);
    check(
        "sts replicas=3 parallel
         pod web-0 failed
         pod web-1 succeeded",
        expect!["delete web-0, delete web-1, create web-2@new"],
    );
}

#[test]
fn the_highest_ordinal_goes_first_and_alone() {
    check(
        "sts replicas=1
         pod web-0 ready
         pod web-2 ready
         pod web-10 ready",
        expect!["delete web-10"],
    );
    check(
        "sts replicas=1
         pod web-0 ready
         pod web-1 ready
         pod web-2 ready deleting",
        expect![""],
    );
    // Its own trouble keeps nothing back, another's does.
    check(
        "sts replicas=1
         pod web-0 ready
         pod web-1 ready
         pod web-2",
        expect!["delete web-2"],
    );
    check(
        "sts replicas=1
         pod web-0 ready
         pod web-1
         pod web-2 ready",
        expect!["delete web-2"],
    );
    check(
        "sts replicas=1
         pod web-0 ready
         pod web-1
         pod web-2",
        expect![""],
    );
    check(
        "sts replicas=1
         pod web-0
         pod web-1 ready",
        expect![""],
    );
}

#[test]
fn ordinals_begin_where_the_set_says() {
    check(
        "sts replicas=2 start=5
         pod web-0 ready
         pod web-5 ready",
        expect!["create web-6@new"],
    );
    check(
        "sts replicas=2 start=5
         pod web-0 ready
         pod web-5 ready
         pod web-6 ready
         pod web-7 ready",
        expect!["delete web-7"],
    );
}

#[test]
fn an_update_goes_down_one_pod_at_a_time() {
    check(
        "sts replicas=3
         pod web-0 old ready
         pod web-1 old ready
         pod web-2 old ready",
        expect!["outdated web-2"],
    );
    check(
        "sts replicas=3
         pod web-0 old ready
         pod web-1 old ready
         pod web-2 ready",
        expect!["outdated web-1"],
    );
    check(
        "sts replicas=3 parallel
         pod web-0 old ready
         pod web-1 old ready
         pod web-2",
        expect![""],
    );
    check(
        "sts replicas=3 parallel
         pod web-0 old ready
         pod web-1 old ready
         pod web-2 old ready deleting",
        expect![""],
    );
    // A broken old one may go, if nothing above it is broken.
    check(
        "sts replicas=2 parallel
         pod web-0 old
         pod web-1 ready",
        expect!["outdated web-0"],
    );
    check(
        "sts replicas=2 parallel
         pod web-0 old ready
         pod web-1 failed old",
        expect!["delete web-1"],
    );
}

#[test]
fn pods_below_the_partition_stay_behind() {
    let text = |partition| {
        format!(
            "sts replicas=3 partition={partition}
             pod web-0 old ready
             pod web-1 old ready
             pod web-2 ready"
        )
    };
    check(&text(2), expect![""]);
    check(&text(1), expect!["outdated web-1"]);
    check(&text(9), expect![""]);
    check("sts replicas=3 partition=2", expect!["create web-0@old"]);
    check(
        "sts replicas=3 start=4 partition=1\npod web-4 old ready",
        expect!["create web-5@new"],
    );
    // Without a word about it, as many as were there before are at the old one.
    check(
        "sts replicas=3 partition=unsaid was_current=1",
        expect!["create web-0@old"],
    );
    check(
        "sts replicas=3 partition=unsaid was_current=1\npod web-0 old ready",
        expect!["create web-1@new"],
    );
}

#[test]
fn several_may_be_missing_if_the_set_says_so() {
    let text = |unavailable| {
        format!(
            "sts replicas=5 parallel unavailable={unavailable}
             pod web-0 old ready
             pod web-1 old ready
             pod web-2 old ready
             pod web-3
             pod web-4 old ready"
        )
    };
    check(&text("3"), expect!["outdated web-4, outdated web-2"]);
    check(&text("1"), expect![""]);
    check(&text("79%"), expect!["outdated web-4, outdated web-2"]);
    check(&text("1%"), expect![""]);
}

#[test]
fn on_delete_waits_for_somebody_else() {
    check(
        "sts replicas=2 on_delete
         pod web-0 old ready
         pod web-1 old ready",
        expect![""],
    );
    check(
        "sts replicas=2 on_delete\npod web-0 old ready",
        expect!["create web-1@new"],
    );
}

#[test]
fn adopts_and_releases_by_selector_and_name() {
    check(
        "sts replicas=3
         pod web-0 ready orphan
         pod web-1 ready unselected
         pod web-2 ready stranger
         pod web-x ready
         pod web-01 ready
         pod db-0 ready orphan
         pod web-7 ready orphan unselected
         pod web-8 ready orphan deleting",
        expect!["adopt web-0, release web-1, release web-x, release web-01, create web-1@new"],
    );
}

#[test]
fn a_set_that_is_being_deleted_only_counts() {
    check(
        "sts replicas=3 deleting
         pod web-0 failed
         pod web-1 ready orphan
         pod web-4 unselected
         pod web-y",
        expect![""],
    );
}

#[test]
fn labels_are_put_back() {
    check(
        "sts replicas=2
         pod web-0 ready unlabeled",
        expect!["mend web-0 told, create web-1@new"],
    );
}
