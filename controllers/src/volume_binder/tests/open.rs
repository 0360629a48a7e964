//! Claims that name no volume.

use super::*;

#[test]
fn a_volume_that_fits_is_bound_and_the_smallest_first() {
    check(
        "claim c\nvolume v",
        expect![[r#"
        volume v Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c\nvolume large size=10Gi\nvolume small",
        expect![[r#"
        volume small Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=small completed by-controller"#]],
    );
    check(
        "claim c size=10Gi\nvolume v",
        expect![
            "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
        ],
    );
    check(
        "claim c labels=a\nvolume v",
        expect![
            "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
        ],
    );
    check(
        "claim c labels=a\nvolume other\nvolume v labels=a",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=1Gi volume=v completed by-controller"#]],
    );
}

#[test]
fn a_claim_that_shows_another_phase_is_pending_again() {
    check(
        "claim c Bound size=10Gi\nvolume v",
        expect![[r#"
        claim c Pending
        Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"#]],
    );
}

#[test]
fn a_volume_that_is_held_for_the_claim_is_bound_whatever_else_there_is() {
    check(
        "claim c\nvolume v size=10Gi held=c\nvolume other",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=10Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c\nvolume v size=10Gi held=c/u-c\nvolume other",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=10Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c\nvolume v held=c/another",
        expect![
            "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
        ],
    );
}

#[test]
fn a_binding_that_was_begun_is_ended() {
    check(
        "claim c\nvolume v held=c/u-c by-controller",
        expect![[r#"
        volume v Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c\nvolume v Bound held=c/u-c by-controller",
        expect!["claim c Bound has=1Gi volume=v completed by-controller"],
    );
}

#[test]
fn volumes_that_are_not_available_are_passed_over() {
    check(
        "claim c\nvolume a Pending\nvolume b Failed\nvolume d Released\nvolume e Bound",
        expect![
            "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
        ],
    );
}

#[test]
fn the_class_decides() {
    check(
        "claim c class=gold\nvolume small\nvolume v class=gold size=10Gi\nclass gold p",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=10Gi volume=v class=gold completed by-controller"#]],
    );
    check(
        "claim c\nvolume small class=gold\nvolume v size=10Gi",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=10Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c class=\nvolume v",
        expect![[r#"
        volume v Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=v class= completed by-controller"#]],
    );
}

#[test]
fn a_claim_of_a_late_class_waits_for_a_pod_and_its_node() {
    check(
        "claim c class=wait\nvolume v class=wait\nclass wait p late",
        expect![
            "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding"
        ],
    );
    check(
        "claim c class=wait\nclass wait p late\npod web",
        expect!["Normal WaitForPodScheduled: waiting for pod web to be scheduled"],
    );
    check(
        "claim c class=wait\nclass wait p late\npod a\npod b",
        expect!["Normal WaitForPodScheduled: waiting for pods a,b to be scheduled"],
    );
    // The scheduler chose for it.
    check(
        "claim c class=wait\nvolume v class=wait held=c\nclass wait p late",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=1Gi volume=v class=wait completed by-controller"#]],
    );
    check(
        "claim c class=wait node=n1\nvolume v class=wait held=c/u-c\nclass wait p late",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=1Gi volume=v class=wait completed by-controller node=n1"#]],
    );
}

#[test]
fn a_claim_that_names_no_class_gets_the_default_one_when_there_is_one() {
    check(
        "claim c\nclass gold p default",
        expect!["claim c Pending class=gold"],
    );
    check(
        "claim c class=\nclass gold p default",
        expect![
            "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
        ],
    );
    // What is there without a class comes first.
    check(
        "claim c\nvolume v\nclass gold p default",
        expect![[r#"
        volume v Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=v completed by-controller"#]],
    );
}

#[test]
fn the_class_of_attributes_is_shown() {
    check(
        "claim c attributes=fast\nvolume v attributes=fast",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=1Gi volume=v attributes=fast completed by-controller"#]],
    );
}
