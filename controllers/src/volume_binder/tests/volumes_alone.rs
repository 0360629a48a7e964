//! Volumes.

use super::*;

#[test]
fn a_volume_that_is_nobodys_or_held_by_name_is_available() {
    check("volume v Pending", expect!["volume v Available"]);
    check(
        "volume v Pending held=c",
        expect!["volume v Available held=c"],
    );
    check("volume v", expect!["nothing"]);
}

#[test]
fn a_volume_whose_claim_is_gone_is_released_and_kept() {
    check(
        "volume v Bound held=c/u-c",
        expect!["volume v Released held=c/u-c"],
    );
    check(
        "volume v Bound held=c/u-c\nclaim c uid=another volume=v",
        expect!["volume v Released held=c/u-c"],
    );
    check("volume v Released held=c/u-c", expect!["nothing"]);
}

#[test]
fn a_binding_that_was_begun_is_left_to_the_claims_pass() {
    check(
        "volume v Bound held=c/u-c by-controller\nclaim c",
        expect!["then claim c"],
    );
    check(
        "volume v Bound held=c/u-c\nclaim c",
        expect!["then claim c"],
    );
    check(
        "volume v held=c/u-c block\nclaim c",
        expect![[r#"
        Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.
        Warning VolumeMismatch: Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode."#]],
    );
}

#[test]
fn a_volume_of_a_bound_claim_is_bound() {
    check(
        "volume v held=c/u-c\nclaim c Bound volume=v",
        expect!["volume v Bound held=c/u-c"],
    );
    check(
        "volume v held=c/u-c policy=Delete\nclaim c Bound volume=v",
        expect!["volume v Bound held=c/u-c"],
    );
}

#[test]
fn a_volume_whose_claim_went_elsewhere_is_free_again() {
    check(
        "volume v Bound held=c/u-c by-controller\nclaim c Bound volume=other",
        expect!["volume v Available"],
    );
    check(
        "volume v Bound held=c/u-c\nclaim c Bound volume=other",
        expect!["volume v Available held=c"],
    );
    // Of two that were made for one claim, one is of no use.
    check(
        "volume v Bound held=c/u-c by-controller policy=Delete provisioned-by=example.com/p\n\
         claim c Bound volume=other",
        expect!["volume v Released held=c/u-c by-controller provisioned-by=example.com/p"],
    );
}

#[test]
fn who_provisioned_a_volume_deletes_it() {
    check(
        "volume v Bound held=c/u-c policy=Delete provisioned-by=example.com/p",
        expect!["volume v Released held=c/u-c provisioned-by=example.com/p"],
    );
    check(
        "volume v Bound held=c/u-c policy=Delete csi",
        expect!["volume v Released held=c/u-c"],
    );
    check(
        "volume v Released held=c/u-c policy=Delete migrated-to=d",
        expect!["nothing"],
    );
}

#[test]
fn what_nobody_can_do_fails_and_is_told_once() {
    check(
        "volume v Bound held=c/u-c policy=Delete",
        expect![[r#"
        volume v Failed held=c/u-c (error getting deleter volume plugin for volume "v": no volume plugin matched)
        Warning VolumeFailedDelete: error getting deleter volume plugin for volume "v": no volume plugin matched"#]],
    );
    check(
        "volume v Bound held=c/u-c policy=Delete provisioned-by=kubernetes.io/glue",
        expect![[r#"
            volume v Failed held=c/u-c provisioned-by=kubernetes.io/glue finalizer=kubernetes.io/pv-controller (no volume plugin matched name: kubernetes.io/glue)
            Warning VolumeFailedDelete: no volume plugin matched name: kubernetes.io/glue"#]],
    );
    check(
        "volume v Bound held=c/u-c policy=Recycle",
        expect![[r#"
        volume v Failed held=c/u-c (No recycler plugin found for the volume!)
        Warning VolumeFailedRecycle: No recycler plugin found for the volume!"#]],
    );
    check(
        "volume v Bound held=c/u-c policy=Burn",
        expect![[r#"
        volume v Failed held=c/u-c (Volume has unrecognized PersistentVolumeReclaimPolicy)
        Warning VolumeUnknownReclaimPolicy: Volume has unrecognized PersistentVolumeReclaimPolicy"#]],
    );
    check(
        "volume v Failed held=c/u-c policy=Recycle",
        expect!["nothing"],
    );
}

#[test]
fn the_finalizer_of_what_was_built_in_follows_the_policy() {
    let by = "provisioned-by=kubernetes.io/glue finalizer=kubernetes.io/pv-controller";
    check(
        &format!("volume v Bound held=c/u-c {by}\nclaim c Bound volume=v"),
        expect!["volume v Bound held=c/u-c provisioned-by=kubernetes.io/glue"],
    );
    check(
        &format!("volume v Bound held=c/u-c policy=Delete {by}\nclaim c Bound volume=v"),
        expect!["nothing"],
    );
}
