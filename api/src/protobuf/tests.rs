//! Protobuf and JSON of one object say the same, and hostile bytes are refused.

use super::*;
use crate::decode::{FieldValidation, conform};
use proptest::prelude::*;
use serde_json::json;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const POD: &str = "io.k8s.api.core.v1.Pod";

/// Encodes and decodes: what comes back must be the same.
fn check_round_trip(type_name: &str, api_version: &str, kind: &str, mut value: Value) {
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    let bytes = encode(&value, api_version, kind, type_name).unwrap();
    let (meta, back) = decode(&bytes).unwrap();
    assert_eq!(meta.api_version, api_version);
    assert_eq!(meta.kind, kind);
    assert_eq!(back, value);
}

fn check_error(error: &str, bytes: &[u8]) {
    assert_eq!(decode(bytes).unwrap_err().to_string(), error);
}

/// A document of a kind in v1 around the bytes of an object.
fn document(kind: &str, object: &[u8]) -> Vec<u8> {
    sealed("v1", kind, |out| {
        out.extend_from_slice(object);
        Ok(())
    })
    .unwrap()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn what_kubectl_sends_is_its_json() {
    let bodies = include_str!("tests/kubectl.tsv");
    for line in bodies.lines().filter(|line| !line.starts_with('#')) {
        let [command, hex, json] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let (meta, mut ours) = decode(&from_hex(hex)).unwrap();
        let mut theirs: Value = serde_json::from_str(json).unwrap();
        let type_name = type_of(&meta).unwrap();
        let mode = FieldValidation::Strict;
        assert!(conform(&mut ours, &type_name, mode).unwrap().is_empty());
        conform(&mut theirs, &type_name, mode).unwrap();
        assert_eq!(ours, theirs, "kubectl create {command}");

        let bytes = encode(&ours, &meta.api_version, &meta.kind, &type_name).unwrap();
        let (_, mut again) = decode(&bytes).unwrap();
        conform(&mut again, &type_name, mode).unwrap();
        assert_eq!(again, ours, "kubectl create {command}");
    }
}

#[test]
fn every_special_form_goes_there_and_back() {
    let spec = json!({
        "containers": [{
            "name": "c", "command": ["a", ""],
            "livenessProbe": {
                "httpGet": { "port": "http", "path": "/" }, "periodSeconds": 3,
            },
            "readinessProbe": { "tcpSocket": { "port": 80 } },
            "resources": { "limits": { "cpu": "100m", "memory": "1Gi" } },
        }],
        "volumes": [{ "name": "v", "configMap": { "name": "c", "defaultMode": 420 } }],
        "securityContext": { "supplementalGroups": [1, 0, -1] },
    });
    let metadata = json!({
        "name": "p", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": { "a": "" },
        "managedFields": [{ "manager": "m", "fieldsV1": { "f:spec": {} } }],
    });
    check_round_trip(
        POD,
        "v1",
        "Pod",
        json!({ "metadata": metadata, "spec": spec }),
    );
    let lease = json!({ "spec": { "renewTime": "2026-01-02T03:04:05.000006Z" } });
    let lease_type = "io.k8s.api.coordination.v1.Lease";
    check_round_trip(lease_type, "coordination.k8s.io/v1", "Lease", lease);
    let secret = json!({ "data": { "a": "AAH/", "empty": "" } });
    check_round_trip("io.k8s.api.core.v1.Secret", "v1", "Secret", secret);
    let revision = json!({ "data": { "spec": [1, null] }, "revision": -3 });
    let revision_type = "io.k8s.api.apps.v1.ControllerRevision";
    check_round_trip(revision_type, "apps/v1", "ControllerRevision", revision);
    let review = json!({ "spec": { "extra": { "k": ["a", "b"], "none": [] } } });
    let review_type = "io.k8s.api.authorization.v1.SubjectAccessReview";
    check_round_trip(
        review_type,
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        review,
    );
}

#[test]
fn what_is_measured_goes_there_and_back() {
    let usage = json!({ "cpu": "12345n", "memory": "3Mi" });
    let pod = json!({
        "metadata": { "name": "p", "namespace": "n" },
        "timestamp": "2026-01-02T03:04:05Z", "window": "1m15.004s",
        "containers": [{ "name": "c", "usage": usage }],
    });
    check_round_trip(
        "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
        "metrics.k8s.io/v1beta1",
        "PodMetrics",
        pod,
    );
}

#[test]
fn schemas_of_definitions_go_there_and_back() {
    let schema = json!({
        "$ref": "#/a", "x-kubernetes-int-or-string": true, "minimum": 0.5, "default": [1],
        "items": { "type": "string" },
        "additionalProperties": false,
        "properties": {
            "a": { "items": [{ "type": "string" }], "additionalProperties": true },
            "b": { "additionalProperties": { "type": "integer" } },
        },
        "dependencies": { "a": ["b"], "c": { "type": "object" } },
    });
    let version = json!({ "name": "v1", "schema": { "openAPIV3Schema": schema } });
    check_round_trip(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        json!({ "spec": { "versions": [version] } }),
    );
}

#[test]
fn options_and_subresources_have_their_types() {
    let options = json!({
        "gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"],
        "preconditions": { "uid": "u" },
    });
    let type_name = format!("{META}.DeleteOptions");
    for api_version in ["v1", "apps/v1", "policy/v1"] {
        check_round_trip(&type_name, api_version, "DeleteOptions", options.clone());
    }
    let status = json!({ "status": "Failure", "code": 404, "details": { "name": "n" } });
    check_round_trip(&format!("{META}.Status"), "v1", "Status", status);
    for (type_name, api_version, kind) in [
        ("io.k8s.api.policy.v1.Eviction", "policy/v1", "Eviction"),
        ("io.k8s.api.core.v1.Binding", "v1", "Binding"),
        ("io.k8s.api.autoscaling.v1.Scale", "autoscaling/v1", "Scale"),
    ] {
        let value = json!({ "metadata": { "name": "n" } });
        check_round_trip(type_name, api_version, kind, value);
    }
}

#[test]
fn every_served_kind_has_a_form() {
    for resource in crate::catalogue::all() {
        assert!(
            table::table().find(resource.schema).is_some(),
            "{}",
            resource.schema
        );
    }
}

#[test]
fn a_list_is_made_item_by_item() {
    let items = [
        json!({ "metadata": { "name": "a" } }),
        json!({ "metadata": { "name": "b" } }),
    ];
    let mut list = ListEncoder::new(POD).unwrap();
    for item in &items {
        list.push(item.as_object().unwrap()).unwrap();
    }
    let metadata = json!({ "resourceVersion": "7", "remainingItemCount": 1 });
    let bytes = list
        .finish("v1", "PodList", metadata.as_object().unwrap())
        .unwrap();
    let (_, back) = decode(&bytes).unwrap();
    let wanted =
        json!({ "apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items });
    assert_eq!(back, wanted);
}

#[test]
fn a_frame_of_a_watch_holds_a_document() {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    let frame = watch_frame("ADDED", &encode(&pod, "v1", "Pod", POD).unwrap());
    let (length, event) = frame.split_at(4);
    assert_eq!(
        u32::from_be_bytes(length.try_into().unwrap()) as usize,
        event.len()
    );
    let (_, event) = decode(&document("WatchEvent", event)).unwrap();
    let wanted =
        json!({ "apiVersion": "v1", "kind": "WatchEvent", "type": "ADDED", "object": pod });
    assert_eq!(event, wanted);
}

#[test]
fn times_and_numbers_are_cut_as_go_does() {
    // Lease.spec{renewTime{seconds: 1, nanos: 1999}, leaseDurationSeconds: 2^32 + 5}
    let lease = b"\x12\x0d\x22\x05\x08\x01\x10\xcf\x0f\x10\x85\x80\x80\x80\x10";
    let mut out = Vec::new();
    out.extend_from_slice(lease);
    let (_, lease) =
        decode_as(&document("Lease", &out), "io.k8s.api.coordination.v1.Lease").unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:01.000001Z");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 5);
    // ObjectMeta.creationTimestamp without content: Go's zero time.
    let (_, pod) = decode(&document("Pod", b"\x0a\x02\x42\x00")).unwrap();
    assert_eq!(pod["metadata"], json!({ "creationTimestamp": null }));
}

#[test]
fn fields_that_come_twice_and_unknown_ones() {
    // name "a", an unknown field 200, then the metadata again with namespace "b".
    let pod = b"\x0a\x03\x0a\x01a\xc2\x0c\x01x\x0a\x03\x1a\x01b";
    let (_, pod) = decode(&document("Pod", pod)).unwrap();
    assert_eq!(pod["metadata"], json!({ "name": "a", "namespace": "b" }));
    // supplementalGroups 1, then 2 and 3 packed.
    let context = b"\x20\x01\x22\x02\x02\x03";
    let context_type = "io.k8s.api.core.v1.PodSecurityContext";
    let (_, context) = decode_as(&document("", context), context_type).unwrap();
    assert_eq!(context["supplementalGroups"], json!([1, 2, 3]));
}

#[test]
fn what_is_no_document_is_refused() {
    check_error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        b"{}",
    );
    check_error("unexpected EOF", b"k8s\0\x0a\x05\x0a");
    check_error("proto: illegal tag 0", b"k8s\0\0");
    check_error(
        "proto: integer overflow",
        &[b"k8s\0".as_slice(), &[0xff; 11]].concat(),
    );
    check_error(
        "no kind \"Foo\" is registered for version \"v1\"",
        &document("Foo", b""),
    );
    check_error(
        "proto: wrong wireType for field metadata",
        &document("Pod", b"\x08\x01"),
    );
}

#[test]
fn hostile_documents_are_bounded() {
    // JSONSchemaProps.not (28), in itself two hundred times.
    let mut schema = Vec::new();
    for _ in 0..200 {
        let inner = std::mem::take(&mut schema);
        wire::put_bytes(&mut schema, 28, &inner);
    }
    let schema_type = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let error = decode_as(&document("", &schema), schema_type).unwrap_err();
    assert_eq!(error, ProtobufError::TooDeep);
    // Documents in watch events in documents.
    let mut event = document("Pod", b"");
    for _ in 0..200 {
        event = document("WatchEvent", &watch_frame("", &event)[4..]);
    }
    assert_eq!(decode(&event).unwrap_err(), ProtobufError::TooDeep);
    // PodSpec.containers (2), two bytes each.
    let mut pod = Vec::new();
    wire::put_bytes(&mut pod, 2, &b"\x12\x00".repeat(reader::VALUES_MAX));
    assert_eq!(
        decode(&document("Pod", &pod)).unwrap_err(),
        ProtobufError::TooManyValues
    );
}

#[test]
fn json_that_does_not_fit_is_refused() {
    let pod = json!({ "spec": { "containers": [{ "name": 5 }] } });
    let error = encode(&pod, "v1", "Pod", POD).unwrap_err();
    assert_eq!(error, ProtobufError::Value("name"));
}

/// Bytes of which many are read as fields of a pod.
fn nearly_a_message() -> impl Strategy<Value = Vec<u8>> {
    let field = (
        1u8..16,
        prop::sample::select(vec![0u8, 1, 2, 5]),
        any::<Vec<u8>>(),
    );
    prop::collection::vec(field, 0..8).prop_map(|fields| {
        let mut out = Vec::new();
        for (number, wire_type, bytes) in fields {
            out.push(number << 3 | wire_type);
            if wire_type == 2 {
                out.push(bytes.len().to_le_bytes()[0]);
            }
            out.extend_from_slice(&bytes);
        }
        out
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        let _ = decode(&bytes);
        let _ = decode(&document("Pod", &bytes));
        let _ = decode(&[MAGIC, &bytes].concat());
    }

    #[test]
    fn no_fields_make_it_panic(bytes in nearly_a_message()) {
        for kind in ["Pod", "Secret", "Event", "WatchEvent", "Status"] {
            let _ = decode(&document(kind, &bytes));
        }
    }

    #[test]
    fn a_broken_body_is_an_error_or_an_object(at in 0usize..200, byte in any::<u8>()) {
        let line = include_str!("tests/kubectl.tsv").lines().nth(1).unwrap();
        let mut body = from_hex(line.split('\t').nth(1).unwrap());
        body[at] = byte;
        if let Ok((_, object)) = decode(&body) {
            prop_assert!(object.is_object());
        }
        body.truncate(at);
        let _ = decode(&body);
    }

    #[test]
    fn numbers_go_there_and_back(number in any::<i64>(), value in any::<i32>()) {
        let pod = json!({
            "metadata": { "generation": number }, "spec": { "priority": value },
        });
        check_round_trip(POD, "v1", "Pod", pod);
    }
}
