//! Claims: which are made, and who owns them under each retention policy.

use super::*;

#[test]
fn claims_come_before_their_pod() {
    check(
        "sts replicas=1 claims=data,log
         claim log-web-0",
        expect!["create web-0@new +data-web-0"],
    );
    let (_, plan) = plan_of(&parse("sts replicas=1 claims=data"));
    let Some(Step::Create { claims, .. }) = plan.phases[0].first() else {
        panic!("makes the pod");
    };
    let labels = claims.create[0].metadata.labels.clone().unwrap();
    let labels: Vec<_> = labels.into_iter().collect();
    let text = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(labels, [text("app", "web"), text("tier", "gold")]);
}

#[test]
fn a_pending_pod_gets_the_claim_that_it_lost() {
    check(
        "sts replicas=1 claims=data\npod web-0 pending",
        expect!["keep web-0 +data-web-0"],
    );
    check("sts replicas=1 claims=data\npod web-0 ready", expect![""]);
    check(
        "sts replicas=1 claims=data\npod web-0 pending\nclaim data-web-0 going",
        expect!["keep web-0 await:data-web-0"],
    );
}

#[test]
fn kept_claims_have_no_owner() {
    check(
        "sts replicas=1 claims=data
         pod web-0 ready
         pod web-1 ready
         claim data-web-0 set
         claim data-web-1 pod=web-1",
        expect!["keep web-0 data-web-0->[] told, keep web-1 data-web-1->[], delete web-1"],
    );
}

#[test]
fn claims_that_go_with_the_set_are_owned_by_it() {
    check(
        "sts replicas=1 claims=data deleted
         pod web-0 ready
         pod web-1 ready
         claim data-web-0
         claim data-web-1 set",
        expect!["keep web-0 data-web-0->[sts] told, delete web-1"],
    );
}

#[test]
fn claims_that_go_with_their_pods_are_owned_by_them_once_those_are_too_many() {
    check(
        "sts replicas=1 claims=data scaled
         pod web-0 ready
         pod web-1 ready
         claim data-web-0
         claim data-web-1",
        expect!["keep web-1 data-web-1->[uid-web-1], delete web-1"],
    );
    check(
        "sts replicas=1 claims=data scaled deleted
         pod web-0 ready
         pod web-1 ready
         claim data-web-0 pod=web-0
         claim data-web-1 set",
        expect![
            "keep web-0 data-web-0->[sts] told, keep web-1 data-web-1->[uid-web-1], delete web-1"
        ],
    );
}

#[test]
fn an_owner_that_does_not_control_is_set_right() {
    check(
        "sts replicas=1 claims=data deleted\npod web-0 ready\nclaim data-web-0 plain",
        expect!["keep web-0 data-web-0->[sts] told"],
    );
}

#[test]
fn what_others_control_is_left_to_them() {
    check(
        "sts replicas=1 claims=data deleted\npod web-0 ready\nclaim data-web-0 other",
        expect![""],
    );
    check(
        "sts replicas=1 claims=data deleted\npod web-0 ready\nclaim data-web-0 other set",
        expect!["keep web-0 data-web-0->[db] conflict:data-web-0 told"],
    );
}

#[test]
fn a_pod_waits_for_its_predecessors_claim_to_go() {
    check(
        "sts replicas=1 claims=data scaled\nclaim data-web-0 stale=web-0",
        expect![""],
    );
    // A claim that is kept may be used again.
    check(
        "sts replicas=1 claims=data\nclaim data-web-0 stale=web-0",
        expect!["create web-0@new"],
    );
    check(
        "sts replicas=1 claims=data\nclaim data-web-0 going",
        expect!["create web-0@new await:data-web-0"],
    );
}
