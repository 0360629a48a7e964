//! Claims that a volume is made for.

use super::*;

#[test]
fn a_provisioner_is_asked() {
    check(
        "claim c class=gold\nclass gold example.com/p",
        expect![[r#"
        claim c Pending class=gold asked=example.com/p
        Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/p' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."#]],
    );
    // Each pass says so.
    check(
        "claim c class=gold asked=example.com/p\nclass gold example.com/p",
        expect![
            "Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/p' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
        ],
    );
}

#[test]
fn a_volume_that_is_there_comes_first() {
    check(
        "claim c class=gold\nvolume v class=gold\nclass gold example.com/p",
        expect![[r#"
            volume v Bound held=c/u-c by-controller
            claim c Bound has=1Gi volume=v class=gold completed by-controller"#]],
    );
    check(
        "claim c class=gold asked=example.com/p\nvolume v class=gold held=c/u-c \
         provisioned-by=example.com/p\nclass gold example.com/p",
        expect![[r#"
            volume v Bound held=c/u-c provisioned-by=example.com/p
            claim c Bound has=1Gi volume=v class=gold completed by-controller asked=example.com/p"#]],
    );
}

#[test]
fn a_late_class_asks_once_a_node_is_chosen() {
    check(
        "claim c class=wait node=n1\nvolume v class=wait\nclass wait example.com/p late",
        expect![[r#"
            claim c Pending class=wait node=n1 asked=example.com/p
            Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/p' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."#]],
    );
}

#[test]
fn what_cannot_be_provisioned_is_told() {
    check(
        "claim c class=gold",
        expect![[r#"Warning ProvisioningFailed: storageclass.storage.k8s.io "gold" not found"#]],
    );
    check(
        "claim c class=gold\nclass gold kubernetes.io/no-provisioner",
        expect![
            "Warning ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner"
        ],
    );
}

#[test]
fn drivers_do_the_work_of_what_was_built_in() {
    check(
        "claim c class=gold\nclass gold kubernetes.io/aws-ebs",
        expect![[r#"
            claim c Pending class=gold asked=ebs.csi.aws.com
            Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."#]],
    );
    check(
        "claim c class=gold asked=kubernetes.io/cinder",
        expect![[r#"
        claim c Pending class=gold asked=kubernetes.io/cinder migrated-to=cinder.csi.openstack.org
        Warning ProvisioningFailed: storageclass.storage.k8s.io "gold" not found"#]],
    );
    check(
        "volume v Bound held=c/u-c provisioned-by=kubernetes.io/cinder \
         finalizer=kubernetes.io/pv-controller\nclaim c Bound volume=v",
        expect![
            "volume v Bound held=c/u-c provisioned-by=kubernetes.io/cinder migrated-to=cinder.csi.openstack.org"
        ],
    );
    check(
        "volume v Bound held=c/u-c provisioned-by=p migrated-to=d\nclaim c Bound volume=v",
        expect!["volume v Bound held=c/u-c provisioned-by=p"],
    );
}
