//! What the status says of the pods that are there.

use super::*;

/// ready/available/current/updated of replicas, and the revisions.
fn check_status(text: &str, expected: Expect) {
    let fixture = parse(text);
    let (_, plan) = plan_of(&fixture);
    let mut status = plan.status;
    status::take_off(&mut status, plan.outdated.len());
    status::complete(&mut status, fixture.set.spec.as_ref().unwrap());
    let count = |value: Option<i32>| value.unwrap_or(0);
    expected.assert_eq(&format!(
        "{} pods: {} ready, {} available, {} current, {} updated; {} to {}",
        status.replicas,
        count(status.ready_replicas),
        count(status.available_replicas),
        count(status.current_replicas),
        count(status.updated_replicas),
        status.current_revision.unwrap(),
        status.update_revision.unwrap(),
    ));
}

#[test]
fn the_status_counts_and_ends_a_rollout() {
    check_status(
        "sts replicas=4 min_ready=10
         pod web-0 old ready
         pod web-1 old ready=5
         pod web-2 ready deleting
         pod web-3
         pod web-4 pending",
        expect!["5 pods: 3 ready, 2 available, 2 current, 2 updated; old to new"],
    );
    check_status(
        "sts replicas=2
         pod web-0 old ready
         pod web-1 old ready",
        expect!["2 pods: 2 ready, 2 available, 1 current, 0 updated; old to new"],
    );
    check_status(
        "sts replicas=2
         pod web-0 ready
         pod web-1 ready",
        expect!["2 pods: 2 ready, 2 available, 2 current, 2 updated; new to new"],
    );
    check_status(
        "sts replicas=2 on_delete
         pod web-0 ready
         pod web-1 ready",
        expect!["2 pods: 2 ready, 2 available, 0 current, 2 updated; old to new"],
    );
}
