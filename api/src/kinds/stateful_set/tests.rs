//! Defaults, printed cells, validation and what an update may change of a StatefulSet.

use crate::kinds::testing::{check_errors, check_row, check_spec, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn database() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "database", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            }],
        },
    })
}

#[test]
fn defaults() {
    check_spec(
        "statefulsets",
        database(),
        expect![[r#"
        persistentVolumeClaimRetentionPolicy: {"whenDeleted":"Retain","whenScaled":"Retain"}
        podManagementPolicy: "OrderedReady"
        replicas: 1
        revisionHistoryLimit: 10
        selector: {"matchLabels":{"app":"web"}}
        serviceName: ""
        template: {"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}
        updateStrategy: {"rollingUpdate":{"partition":0},"type":"RollingUpdate"}
        volumeClaimTemplates: [{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}]"#]],
    );
}

#[test]
fn printed() {
    let mut database = database();
    database["status"] = json!({ "readyReplicas": 1 });
    check_row(
        "statefulsets",
        database,
        200,
        expect![[r#"
        Name: database
        Ready: 1/1
        Age: 3m20s
        Containers: web
        Images: web:1"#]],
    );
}

#[test]
fn a_claim_is_a_volume_of_the_template() {
    let mut good = database();
    good["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{ "name": "data", "mountPath": "/data" }]);
    check_errors("statefulsets", good, expect![[""]]);
    let mut bad = database();
    bad["spec"]["volumeClaimTemplates"][0]["spec"] = json!({});
    check_errors(
        "statefulsets",
        bad,
        expect![[r#"
        spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required
        spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"#]],
    );
}

#[test]
fn policies_and_strategies() {
    let mut bad = database();
    bad["spec"]["podManagementPolicy"] = "Random".into();
    bad["spec"]["updateStrategy"] =
        json!({ "type": "OnDelete", "rollingUpdate": { "partition": 1 } });
    bad["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({ "whenDeleted": "Keep" });
    bad["spec"]["ordinals"] = json!({ "start": -1 });
    bad["spec"]["serviceName"] = "a.b".into();
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    check_errors(
        "statefulsets",
        bad,
        expect![[r#"
        spec.podManagementPolicy: Invalid value: "Random": must be 'OrderedReady' or 'Parallel'
        spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate'
        spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"
        spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0
        spec.serviceName: Invalid value: "a.b": must not contain dots
        spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]],
    );
    let mut bad = database();
    bad["spec"]["updateStrategy"] = json!({ "type": "Slowly" });
    bad["spec"]["selector"] = json!({});
    check_errors(
        "statefulsets",
        bad,
        expect![[r#"
        spec.updateStrategy: Invalid value: {"Type":"Slowly","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'
        spec.selector: Invalid value: {}: empty selector is invalid for statefulset"#]],
    );
}

#[test]
fn only_some_fields_change() {
    let mut new = database();
    new["spec"]["replicas"] = 3.into();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2".into();
    update_errors("statefulsets", new, database(), Part::Main, expect![[""]]);
    let mut new = database();
    new["spec"]["serviceName"] = "other".into();
    update_errors(
        "statefulsets",
        new,
        database(),
        Part::Main,
        expect![
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ],
    );
    let mut new = database();
    new["status"] = json!({ "replicas": 1, "readyReplicas": 2, "availableReplicas": 3 });
    update_errors(
        "statefulsets",
        new,
        database(),
        Part::Status,
        expect![[r#"
        status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas"#]],
    );
}
