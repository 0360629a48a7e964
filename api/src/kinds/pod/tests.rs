//! Defaults, printed cells, validation and strategy of a Pod.

use super::Pod;
use super::strategy::grace_seconds;
use crate::kinds::testing::{
    check_errors, check_row, check_spec, defaulted, object, update_errors,
};
use crate::resource::{Part, Requester, Rules};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

mod printing;
mod updates;

fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "containers": [{ "name": "web", "image": "web" }] },
    })
}

/// A pod whose spec has `fields` over the smallest one.
fn with(fields: Value) -> Value {
    let mut pod = web();
    for (name, value) in fields.as_object().unwrap() {
        pod["spec"][name] = value.clone();
    }
    pod
}

#[test]
fn the_condition_of_a_gated_pod_has_a_time() {
    let mut pod = object(with(json!({ "schedulingGates": [{ "name": "a.b/c" }] })));
    Pod.prepare_create(&mut pod);
    let now = "2026-01-02T03:04:05Z";
    Pod.stamp(&mut pod, None, Part::Main, &Requester::default(), now);
    let condition = &pod.list(&["status", "conditions"])[0];
    assert_eq!(condition["reason"], "SchedulingGated");
    assert_eq!(condition["lastTransitionTime"], now);
}

#[test]
fn defaults_of_a_minimal_pod() {
    check_spec(
        "pods",
        web(),
        expect![[r#"
        containers: [{"image":"web","imagePullPolicy":"Always","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]
        dnsPolicy: "ClusterFirst"
        enableServiceLinks: true
        restartPolicy: "Always"
        schedulerName: "default-scheduler"
        securityContext: {}
        terminationGracePeriodSeconds: 30"#]],
    );
}

#[test]
fn defaults_of_what_a_container_holds() {
    let pod = with(json!({
        "hostNetwork": true,
        "serviceAccount": "old-name",
        "volumes": [
            { "name": "scratch" },
            { "name": "host", "hostPath": { "path": "/var" } },
            { "name": "all", "projected": { "sources": [
                { "serviceAccountToken": { "path": "token" } },
                { "clusterTrustBundle": { "name": "roots", "path": "roots" } },
                { "downwardAPI": { "items": [
                    { "path": "a", "fieldRef": { "fieldPath": "metadata.name" } },
                ] } },
            ] } },
        ],
        "containers": [{
            "name": "web", "image": "registry:5000/web:1@sha256:abc",
            "ports": [{ "containerPort": 80 }],
            "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
            "resources": { "limits": { "cpu": "1500m", "memory": "0.5Gi" } },
            "livenessProbe": { "httpGet": { "port": 80 } },
            "readinessProbe": { "grpc": { "port": 80 }, "periodSeconds": 3 },
        }],
    }));
    check_spec(
        "pods",
        pod,
        expect![[r#"
        containers: [{"env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"image":"registry:5000/web:1@sha256:abc","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"web","ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}],"readinessProbe":{"failureThreshold":3,"grpc":{"port":80,"service":""},"periodSeconds":3,"successThreshold":1,"timeoutSeconds":1},"resources":{"limits":{"cpu":"1500m","memory":"512Mi"},"requests":{"cpu":"1500m","memory":"512Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]
        dnsPolicy: "ClusterFirst"
        enableServiceLinks: true
        hostNetwork: true
        restartPolicy: "Always"
        schedulerName: "default-scheduler"
        securityContext: {}
        serviceAccount: "old-name"
        serviceAccountName: "old-name"
        terminationGracePeriodSeconds: 30
        volumes: [{"emptyDir":{},"name":"scratch"},{"hostPath":{"path":"/var","type":""},"name":"host"},{"name":"all","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":"token"}},{"clusterTrustBundle":{"name":"roots","path":"roots"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"},"path":"a"}]}}]}}]"#]],
    );
}

#[test]
fn names_images_and_policies() {
    let bad = with(json!({
        "containers": [
            { "name": "Web", "image": "" },
            { "name": "a", "image": " a", "imagePullPolicy": "Sometimes" },
            { "name": "a", "image": "a", "terminationMessagePolicy": "Never" },
        ],
        "initContainers": [{ "name": "a", "image": "a", "livenessProbe": {} }],
        "restartPolicy": "Maybe",
        "dnsPolicy": "None",
        "hostname": "a.b",
        "nodeName": "-",
    }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
            spec.containers[0].name: Invalid value: "Web": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.containers[0].image: Required value
            spec.containers[1].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"
            spec.containers[2].terminationMessagePolicy: Unsupported value: "Never": supported values: "File", "FallbackToLogsOnError"
            spec.containers[2].name: Duplicate value: "a"
            spec.initContainers[0].name: Duplicate value: "a"
            spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always
            spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"
            spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None
            spec.nodeName: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            spec.hostname: Invalid value: "a.b": must not contain dots
            spec.containers[1].image: Invalid value: " a": must not have leading or trailing whitespace"#]],
    );
    check_errors(
        "pods",
        with(json!({ "containers": [] })),
        expect!["spec.containers: Required value"],
    );
}

#[test]
fn ports_env_and_mounts() {
    let bad = with(json!({
        "volumes": [{ "name": "v" }],
        "containers": [{
            "name": "a", "image": "a",
            "ports": [
                { "containerPort": 0, "name": "toolongtoolongtoolong" },
                { "containerPort": 80, "hostPort": 80 },
                { "containerPort": 81, "hostPort": 80, "protocol": "X" },
                { "containerPort": 82, "hostPort": 80 },
            ],
            "env": [
                { "name": "A=B" },
                { "name": "C", "value": "x", "valueFrom": { "secretKeyRef": { "name": "s" } } },
                { "name": "D", "valueFrom": { "fieldRef": { "fieldPath": "status.phase" } } },
                { "name": "E", "valueFrom": { "resourceFieldRef": { "resource": "cpu" } } },
                { "name": "F", "valueFrom": {} },
            ],
            "envFrom": [{ "configMapRef": {} }, {}],
            "volumeMounts": [
                { "name": "v", "mountPath": "/a" },
                { "name": "w", "mountPath": "/a", "subPath": "../b" },
            ],
        }],
    }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
        spec.containers[0].ports[0].name: Invalid value: "toolongtoolongtoolong": must be no more than 15 characters
        spec.containers[0].ports[0].containerPort: Required value
        spec.containers[0].ports[2].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"
        spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='
        spec.containers[0].env[1].valueFrom.secretKeyRef.key: Required value
        spec.containers[0].env[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty
        spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"
        spec.containers[0].env[3].valueFrom.resourceFieldRef.resource: Unsupported value: "cpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"
        spec.containers[0].env[4].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`
        spec.containers[0].envFrom[0].configMapRef.name: Required value
        spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`
        spec.containers[0].volumeMounts[1].name: Not found: "w"
        spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique
        spec.containers[0].volumeMounts.subPath: Invalid value: "../b": must not contain '..'
        spec.containers[0].ports[3].hostPort: Duplicate value: "TCP//80""#]],
    );
}

#[test]
fn volumes_have_one_good_source() {
    let bad = with(json!({ "volumes": [
        { "name": "a", "secret": {}, "configMap": {} },
        { "name": "B", "hostPath": { "path": "/a/../b", "type": "Cave" } },
        { "name": "c", "configMap": { "name": "c", "defaultMode": 1000,
          "items": [{ "key": "k", "path": "/abs" }] } },
        { "name": "d", "projected": { "sources": [
            { "serviceAccountToken": { "path": "t", "expirationSeconds": 10 } },
        ] } },
        { "name": "e", "csi": { "driver": "x_y" } },
        { "name": "f" }, { "name": "f" },
    ] }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
        spec.volumes[0].secret.secretName: Required value
        spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type
        spec.volumes[1].hostPath.path: Invalid value: "/a/../b": must not contain '..'
        spec.volumes[1].hostPath.type: Unsupported value: "Cave": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
        spec.volumes[1].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        spec.volumes[2].configMap.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), both inclusive
        spec.volumes[2].configMap.items[0].path: Invalid value: "/abs": must be a relative path
        spec.volumes[3].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes
        spec.volumes[4].csi.driver: Invalid value: "x_y": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.volumes[6].name: Duplicate value: "f"
        spec.volumes[3].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"#]],
    );
}

#[test]
fn resources_are_known_and_within_limits() {
    let bad = with(json!({ "containers": [{
        "name": "a", "image": "a",
        "resources": {
            "limits": { "cpu": "1", "example.com/gpu": "1500m", "fruit": "1" },
            "requests": { "cpu": "2", "memory": "-1", "hugepages-2Mi": "4Mi" },
            "claims": [{ "name": "c" }],
        },
    }] }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
        spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer
        spec.containers[0].resources.limits[fruit]: Invalid value: "fruit": must be a standard resource type or fully qualified
        spec.containers[0].resources.limits[fruit]: Invalid value: "fruit": must be a standard resource for containers
        spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1
        spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer
        spec.containers[0].resources.requests[fruit]: Invalid value: "fruit": must be a standard resource type or fully qualified
        spec.containers[0].resources.requests[fruit]: Invalid value: "fruit": must be a standard resource for containers
        spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources
        spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0
        spec.containers[0].resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty"#]],
    );
}

#[test]
fn probes_and_hooks() {
    let bad = with(json!({ "containers": [{
        "name": "a", "image": "a",
        "livenessProbe": { "exec": {}, "tcpSocket": { "port": 1 }, "successThreshold": 2 },
        "readinessProbe": { "httpGet": { "port": "UP", "scheme": "FTP" },
                            "terminationGracePeriodSeconds": 3 },
        "startupProbe": { "periodSeconds": -1 },
        "lifecycle": { "preStop": { "sleep": { "seconds": 60 } } },
    }] }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
            spec.containers[0].lifecycle.preStop.sleep: Invalid value: 60: must be non-negative and less than terminationGracePeriodSeconds (30)
            spec.containers[0].livenessProbe.exec.command: Required value
            spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type
            spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1
            spec.containers[0].readinessProbe.httpGet.port: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
            spec.containers[0].readinessProbe.httpGet.port: Invalid value: "UP": must contain at least one letter (a-z)
            spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"
            spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set for readinessProbes
            spec.containers[0].startupProbe: Required value: must specify a handler type
            spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"#]],
    );
}

#[test]
fn scheduling_rules() {
    let bad = with(json!({
        "nodeSelector": { "a": "-" },
        "tolerations": [
            { "operator": "Equal" },
            { "key": "a", "operator": "Exists", "value": "x", "tolerationSeconds": 3 },
            { "key": "a", "operator": "Near", "effect": "Sometimes" },
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                    { "matchExpressions": [{ "key": "a", "operator": "Gt" }],
                      "matchFields": [{ "key": "b", "operator": "In", "values": ["x"] }] },
                ] },
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 0 }],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{ "matchLabelKeys": ["a"] }],
            },
        },
        "topologySpreadConstraints": [
            { "maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" },
            { "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" },
            { "maxSkew": 1, "whenUnsatisfiable": "Whatever", "minDomains": 0 },
        ],
    }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
        spec.nodeSelector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "b": not a valid field selector key
        spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100
        spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set
        spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty
        spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty
        spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero
        spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"
        spec.topologySpreadConstraints[2].topologyKey: Required value: can not be empty
        spec.topologySpreadConstraints[2].whenUnsatisfiable: Unsupported value: "Whatever": supported values: "DoNotSchedule", "ScheduleAnyway"
        spec.topologySpreadConstraints[2].minDomains: Invalid value: 0: must be greater than zero
        spec.topologySpreadConstraints[2].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Whatever
        spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"
        spec.tolerations[1].effect: Invalid value: "": effect must be 'NoExecute' when `tolerationSeconds` is set
        spec.tolerations[1].operator: Invalid value: "x": value must be empty when `operator` is 'Exists'
        spec.tolerations[2].operator: Unsupported value: "Near": supported values: "Equal", "Exists"
        spec.tolerations[2].effect: Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#]],
    );
}

#[test]
fn security_and_host() {
    let bad = with(json!({
        "hostNetwork": true, "hostPID": true, "shareProcessNamespace": true, "hostUsers": false,
        "securityContext": {
            "runAsUser": -1, "fsGroupChangePolicy": "Often",
            "seccompProfile": { "type": "Localhost" },
            "sysctls": [{ "name": "net.core.somaxconn" }, { "name": "A" }],
        },
        "containers": [{
            "name": "a", "image": "a", "ports": [{ "containerPort": 80, "hostPort": 81 }],
            "securityContext": { "allowPrivilegeEscalation": false, "privileged": true },
        }],
    }));
    check_errors(
        "pods",
        bad,
        expect![[r#"
            spec.containers[0].securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true
            spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true
            spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive
            spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled
            spec.securityContext.sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified when 'hostNetwork' is true
            spec.securityContext.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$
            spec.securityContext.fsGroupChangePolicy: Unsupported value: "Often": supported values: "Always", "OnRootMismatch"
            spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost
            spec.hostNetwork: Forbidden: when `hostUsers` is false
            spec.HostPID: Forbidden: when `hostUsers` is false"#]],
    );
}

#[test]
fn a_new_pod_is_pending_with_its_class() {
    let class = |resources: Value| {
        let mut pod = defaulted(
            "pods",
            with(json!({ "containers": [
            { "name": "a", "image": "a", "resources": resources },
        ] })),
        );
        Pod.prepare_create(&mut pod);
        format!(
            "{} {}",
            pod.str(&["status", "phase"]),
            pod.str(&["status", "qosClass"])
        )
    };
    let classes = [
        class(json!({})),
        class(json!({ "requests": { "cpu": "1" } })),
        class(json!({ "limits": { "cpu": "1", "memory": "1Gi" } })),
    ];
    assert_eq!(
        classes,
        [
            "Pending BestEffort",
            "Pending Burstable",
            "Pending Guaranteed"
        ]
    );
    // Resources of the pod count alone, even when they name none.
    let spec = json!({ "resources": {}, "containers": [
        { "name": "a", "image": "a", "resources": { "requests": { "cpu": "1" } } },
    ] });
    let mut pod = defaulted("pods", with(spec));
    Pod.prepare_create(&mut pod);
    assert_eq!(pod.str(&["status", "qosClass"]), "BestEffort");
}

#[test]
fn of_profiles_by_annotation_a_new_pod_has_fields() {
    let mut pod = defaulted(
        "pods",
        with(json!({ "containers": [{ "name": "a", "image": "a" }] })),
    );
    let key = "container.apparmor.security.beta.kubernetes.io/a";
    pod.set(&["metadata", "annotations"], json!({ key: "unconfined" }));
    let deprecated = Pod.early_warnings(&pod);
    expect![[r#"metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since v1.30; use the "appArmorProfile" field instead"#]]
    .assert_eq(&deprecated.join("\n"));
    Pod.prepare_create(&mut pod);
    let context = &pod.list(&["spec", "containers"])[0]["securityContext"];
    assert_eq!(context["appArmorProfile"], json!({ "type": "Unconfined" }));
    assert!(Pod.early_warnings(&pod).is_empty() && Pod.warnings(&pod).is_empty());
    let contradicts = json!({ key: "runtime/default" });
    pod.set(&["metadata", "annotations"], contradicts);
    assert_eq!(Pod.validate_create(&pod).len(), 1);
    // Who updates a pod is told of none of it.
    assert!(Pod.warnings_on_update(&pod, &pod).is_empty());
}

#[test]
fn grace_of_a_deletion() {
    let mut pod = defaulted("pods", web());
    assert_eq!(grace_seconds(&pod, None), 0, "no node runs it");
    pod.set(&["spec", "nodeName"], "edge-1".into());
    assert_eq!(grace_seconds(&pod, None), 30);
    assert_eq!(grace_seconds(&pod, Some(0)), 0);
    assert_eq!(grace_seconds(&pod, Some(-1)), 1);
    pod.set(&["status", "phase"], "Failed".into());
    assert_eq!(grace_seconds(&pod, Some(9)), 0);
}

#[test]
fn fields_to_select_by() {
    let mut pod = object(web());
    pod.set(&["status", "podIPs"], json!([{ "ip": "10.42.0.2" }]));
    assert_eq!(Pod.field(&pod, "spec.hostNetwork"), "false");
    assert_eq!(Pod.field(&pod, "status.podIP"), "10.42.0.2");
    assert_eq!(Pod.field(&pod, "spec.nodeName"), "");
}

#[test]
fn warnings_of_names() {
    let mut pod = web();
    pod["metadata"]["name"] = "a.b".into();
    pod["spec"]["terminationGracePeriodSeconds"] = (-1).into();
    expect![[r#"
        metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]
        spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"#]].assert_eq(&Pod.warnings(&object(pod)).join("\n"));
}

fn check_status(fields: Value, now: i64, expected: Expect) {
    let mut pod = web();
    pod["status"] = fields;
    check_row("pods", pod, now, expected);
}
