//! Claims that name a volume, and claims that were bound.

use super::*;

#[test]
fn a_volume_that_is_not_there_is_waited_for() {
    check("claim c volume=v", expect!["nothing"]);
    check(
        "claim c Bound volume=v",
        expect!["claim c Pending volume=v"],
    );
}

#[test]
fn the_volume_that_is_named_is_bound_and_no_other() {
    check(
        "claim c volume=v\nvolume small\nvolume v size=10Gi",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=10Gi volume=v completed"#]],
    );
    check(
        "claim c volume=v\nvolume v held=c",
        expect![[r#"
        volume v Bound held=c/u-c
        claim c Bound has=1Gi volume=v completed"#]],
    );
    check(
        "claim c volume=v\nvolume v held=c/u-c",
        expect![[r#"
        volume v Bound held=c/u-c
        claim c Bound has=1Gi volume=v completed"#]],
    );
    check(
        "claim c volume=v labels=a\nvolume v",
        expect![[r#"
        volume v Bound held=c/u-c by-controller
        claim c Bound has=1Gi volume=v completed"#]],
    );
}

#[test]
fn one_that_does_not_fit_is_not_bound() {
    check(
        "claim c Bound volume=v size=2Gi\nvolume v",
        expect![[r#"
        claim c Pending volume=v
        Warning VolumeMismatch: Cannot bind to requested volume "v": requested PV is too small"#]],
    );
    check(
        "claim c volume=v\nvolume v class=gold",
        expect![[
            r#"Warning VolumeMismatch: Cannot bind to requested volume "v": storageClassName does not match"#
        ]],
    );
    check(
        "claim c volume=v modes=RWX\nvolume v",
        expect![[
            r#"Warning VolumeMismatch: Cannot bind to requested volume "v": incompatible accessMode"#
        ]],
    );
    check(
        "claim c volume=v\nvolume v block",
        expect![[
            r#"Warning VolumeMismatch: Cannot bind to requested volume "v": incompatible volumeMode"#
        ]],
    );
    check(
        "claim c volume=v\nvolume v attributes=fast",
        expect![[
            r#"Warning VolumeMismatch: Cannot bind to requested volume "v": volumeAttributesClassName does not match"#
        ]],
    );
    check(
        "claim c volume=v attributes=fast\nvolume v attributes=fast",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=1Gi volume=v attributes=fast completed"#]],
    );
}

#[test]
fn anothers_volume_is_left_alone() {
    check(
        "claim c Bound volume=v\nvolume v Bound held=d/u-d",
        expect![[r#"
            claim c Pending volume=v
            Warning FailedBinding: volume "v" already bound to a different claim."#]],
    );
    check(
        "claim c Bound volume=v by-controller\nvolume v Bound held=d/u-d",
        expect![[r#"Warning FailedBinding: volume "v" already bound to a different claim."#]],
    );
}

#[test]
fn a_claim_that_was_bound_is_lost_without_its_volume() {
    check(
        "claim c Bound by-controller completed",
        expect![[r#"
        claim c Lost completed by-controller
        Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"#]],
    );
    check(
        "claim c Bound volume=v by-controller completed",
        expect![[r#"
        claim c Lost volume=v completed by-controller
        Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"#]],
    );
    check(
        "claim c volume=v completed\nvolume v held=c/another",
        expect![[r#"
            claim c Lost volume=v completed
            Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"#]],
    );
    check(
        "claim c volume=v completed\nvolume v held=d/u-d",
        expect![[r#"
        claim c Lost volume=v completed
        Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"#]],
    );
    // Told once.
    check("claim c Lost volume=v completed", expect!["nothing"]);
}

#[test]
fn a_claim_that_was_bound_is_bound_to_its_volume_again() {
    check(
        "claim c volume=v by-controller completed\nvolume v",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=1Gi volume=v completed by-controller"#]],
    );
    check(
        "claim c volume=v completed labels=a\nvolume v held=c/u-c",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=1Gi volume=v completed"#]],
    );
    check(
        "claim c Bound volume=v completed\nvolume v Bound held=c/u-c",
        expect!["nothing"],
    );
    check(
        "claim c Lost volume=v completed\nvolume v held=c/u-c",
        expect![[r#"
            volume v Bound held=c/u-c
            claim c Bound has=1Gi volume=v completed"#]],
    );
}

#[test]
fn a_size_that_a_bound_claim_shows_is_left_to_who_resizes() {
    check(
        "claim c Bound has=1Gi volume=v completed\nvolume v Bound size=2Gi held=c/u-c",
        expect!["nothing"],
    );
    check(
        "claim c volume=v completed\nvolume v Bound size=2Gi shown-size=1Gi held=c/u-c",
        expect!["claim c Bound has=1Gi volume=v completed"],
    );
}
