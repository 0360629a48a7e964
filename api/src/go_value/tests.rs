//! Go's view of values.

use super::*;
use expect_test::expect;
use serde_json::json;

#[test]
fn fields_have_go_names_in_go_order_and_unset_ones_show() {
    let taint = json!({ "key": "a", "effect": "NoSchedule", "value": "x" });
    expect![[r#"{"Key":"a","Value":"x","Effect":"NoSchedule","TimeAdded":null}"#]]
        .assert_eq(&internal("io.k8s.api.core.v1.Taint", &taint));
    let selector = json!({ "matchExpressions": [
        { "scopeName": "PriorityClass", "operator": "In", "values": ["high"] },
    ] });
    expect![[
        r#"{"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":["high"]}]}"#
    ]]
    .assert_eq(&internal("io.k8s.api.core.v1.ScopeSelector", &selector));
}

#[test]
fn common_types_keep_their_json_form() {
    let selector = json!({ "matchLabels": { "a": "b" } });
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
    expect![[r#"{"matchLabels":{"a":"b"}}"#]].assert_eq(&internal(name, &selector));
}

#[test]
fn a_pod_template_is_shown_as_the_internal_type_has_it() {
    let template = json!({
        "metadata": { "labels": { "a": "<b>" } },
        "spec": {
            "hostPID": true,
            "containers": [{
                "name": "c",
                "image": "i",
                "tty": true,
                "livenessProbe": { "grpc": { "port": 1 } },
                "volumeMounts": [{ "name": "v", "mountPath": "/v" }],
            }],
            "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "w", "cephfs": {} }],
            "os": { "name": "linux" },
        },
    });
    expect![[r#"{"labels":{"a":"\u003cb\u003e"},"Spec":{"Volumes":[{"Name":"v","HostPath":null,"EmptyDir":{"Medium":"","SizeLimit":null},"GCEPersistentDisk":null,"AWSElasticBlockStore":null,"GitRepo":null,"Secret":null,"NFS":null,"ISCSI":null,"Glusterfs":null,"PersistentVolumeClaim":null,"RBD":null,"Quobyte":null,"FlexVolume":null,"Cinder":null,"CephFS":null,"Flocker":null,"DownwardAPI":null,"FC":null,"AzureFile":null,"ConfigMap":null,"VsphereVolume":null,"AzureDisk":null,"PhotonPersistentDisk":null,"Projected":null,"PortworxVolume":null,"ScaleIO":null,"StorageOS":null,"CSI":null,"Ephemeral":null,"Image":null},{"Name":"w","HostPath":null,"EmptyDir":null,"GCEPersistentDisk":null,"AWSElasticBlockStore":null,"GitRepo":null,"Secret":null,"NFS":null,"ISCSI":null,"Glusterfs":null,"PersistentVolumeClaim":null,"RBD":null,"Quobyte":null,"FlexVolume":null,"Cinder":null,"CephFS":{"Monitors":null,"Path":"","User":"","SecretFile":"","SecretRef":null,"ReadOnly":false},"Flocker":null,"DownwardAPI":null,"FC":null,"AzureFile":null,"ConfigMap":null,"VsphereVolume":null,"AzureDisk":null,"PhotonPersistentDisk":null,"Projected":null,"PortworxVolume":null,"ScaleIO":null,"StorageOS":null,"CSI":null,"Ephemeral":null,"Image":null}],"InitContainers":null,"Containers":[{"Name":"c","Image":"i","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null,"Resources":{"Limits":null,"Requests":null,"Claims":null},"ResizePolicy":null,"RestartPolicy":null,"RestartPolicyRules":null,"VolumeMounts":[{"Name":"v","ReadOnly":false,"RecursiveReadOnly":null,"MountPath":"/v","SubPath":"","MountPropagation":null,"SubPathExpr":""}],"VolumeDevices":null,"LivenessProbe":{"Exec":null,"HTTPGet":null,"TCPSocket":null,"GRPC":{"Port":1,"Service":null},"InitialDelaySeconds":0,"TimeoutSeconds":0,"PeriodSeconds":0,"SuccessThreshold":0,"FailureThreshold":0,"TerminationGracePeriodSeconds":null},"ReadinessProbe":null,"StartupProbe":null,"Lifecycle":null,"TerminationMessagePath":"","TerminationMessagePolicy":"","ImagePullPolicy":"","SecurityContext":null,"Stdin":false,"StdinOnce":false,"TTY":true}],"EphemeralContainers":null,"RestartPolicy":"","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":null,"DNSPolicy":"","NodeSelector":null,"ServiceAccountName":"","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":false,"HostPID":true,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":{"Name":"linux"},"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}}"#]].assert_eq(&internal("io.k8s.api.core.v1.PodTemplateSpec", &template));
}

#[test]
fn what_may_be_a_schema_or_not_shows_both() {
    let schema = json!({
        "type": "array",
        "items": { "type": "string" },
        "additionalProperties": false,
    });
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    expect![[r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"array","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":{"Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"string","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null},"JSONSchemas":null},"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":{"Allows":false,"Schema":null},"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}"#]].assert_eq(&internal(name, &schema));
}

/// Each row is about a type that there is, and each field of one is there, with few exceptions.
#[test]
fn the_facts_name_types_and_fields_that_there_are() {
    let mut missing = Vec::new();
    for line in FACTS.lines().filter(|line| !line.starts_with('#')) {
        let (name, row) = line.split_once('\t').unwrap();
        let id = schema()
            .find(name)
            .unwrap_or_else(|| panic!("no type {name}"));
        for text in row.split(' ').filter(|text| *text != "@metadata") {
            let field = Field::parse(text);
            if schema().field(id, &field.json).is_none() {
                missing.push(format!(
                    "{} {}",
                    name.rsplit('.').next().unwrap(),
                    field.json
                ));
            }
        }
    }
    expect![[r#"
        PodSecurityContext hostNetwork
        PodSecurityContext hostPID
        PodSecurityContext hostIPC
        PodSecurityContext shareProcessNamespace
        PodSecurityContext hostUsers"#]]
    .assert_eq(&missing.join("\n"));
}
