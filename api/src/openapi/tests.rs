//! The OpenAPI documents are whole: index, references, operations.

use super::*;
use expect_test::expect;
use std::collections::BTreeSet;

fn document(path: &str) -> Value {
    serde_json::from_slice(&v3_group(&Kinds::default(), path, Form::Json).unwrap()).unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Everything that a document refers to.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if key == "$ref" => drop(found.insert(text.to_owned())),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn the_index_leads_to_documents() {
    let index = v3_index(&Kinds::default());
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1"));
    for (path, entry) in paths {
        let hash = v3_hash(&Kinds::default(), path).unwrap();
        let address = format!("/openapi/v3/{path}?hash={hash}");
        assert_eq!(entry["serverRelativeURL"], address.as_str());
        let document = document(path);
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        let is_text = path.starts_with(".well-known") || path.starts_with("openid");
        assert_eq!(found.is_empty(), is_text, "{path}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{path}: {reference}");
        }
    }
    assert_eq!(
        v3_group(&Kinds::default(), "apis/nothing/v1", Form::Json),
        None
    );
}

#[test]
fn v2_is_whole() {
    let document: Value = serde_json::from_slice(&v2(&Kinds::default(), Form::Json)).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let definition =
        &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
    assert_eq!(
        definition["x-kubernetes-patch-strategy"],
        "merge,retainKeys"
    );
}

/// Each operation has an identity of its own, as generators of clients need it.
#[test]
fn operation_ids_are_unique() {
    let document: Value = serde_json::from_slice(&v2(&Kinds::default(), Form::Json)).unwrap();
    let mut seen = BTreeSet::new();
    for (path, entry) in document["paths"].as_object().unwrap() {
        for (method, operation) in entry.as_object().unwrap() {
            if let Some(id) = operation["operationId"].as_str() {
                assert!(seen.insert(id.to_owned()), "{method} {path}: {id}");
            }
        }
    }
}

/// What kubectl asks before it applies: strategic merge and server-side validation.
#[test]
fn patch_operations_say_what_they_take() {
    let document = document("api/v1");
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    let content = patch["requestBody"]["content"].as_object().unwrap();
    assert!(content.contains_key("application/strategic-merge-patch+json"));
    let names = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str());
    let names: Vec<&str> = names.flatten().collect();
    assert!(
        names.contains(&"fieldValidation") && names.contains(&"dryRun"),
        "{names:?}"
    );
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Pod");
}

#[test]
fn schemas_carry_the_facts() {
    let document = document("api/v1");
    let schemas = &document["components"]["schemas"];
    expect![[r#"
        {
          "description": "ContainerPort represents a network port in a single container.",
          "properties": {
            "containerPort": {
              "default": 0,
              "description": "Number of port to expose on the pod's IP address. This must be a valid port number, 0 < x < 65536.",
              "format": "int32",
              "type": "integer"
            },
            "hostIP": {
              "description": "What host IP to bind the external port to.",
              "type": "string"
            },
            "hostPort": {
              "description": "Number of port to expose on the host. If specified, this must be a valid port number, 0 < x < 65536. If HostNetwork is specified, this must match ContainerPort. Most containers do not need this.",
              "format": "int32",
              "type": "integer"
            },
            "name": {
              "description": "If specified, this must be an IANA_SVC_NAME and unique within the pod. Each named port in a pod must have a unique name. Name for the port that can be referred to by services.",
              "type": "string"
            },
            "protocol": {
              "default": "TCP",
              "description": "Protocol for port. Must be UDP, TCP, or SCTP. Defaults to \"TCP\".\n\nPossible enum values:\n - `\"SCTP\"` is the SCTP protocol.\n - `\"TCP\"` is the TCP protocol.\n - `\"UDP\"` is the UDP protocol.",
              "enum": [
                "SCTP",
                "TCP",
                "UDP"
              ],
              "type": "string"
            }
          },
          "required": [
            "containerPort"
          ],
          "type": "object"
        }"#]].assert_eq(&pretty(&schemas["io.k8s.api.core.v1.ContainerPort"]));
    let spec = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    expect![[r##"
        {
          "description": "ImagePullSecrets is an optional list of references to secrets in the same namespace to use for pulling any of the images used by this PodSpec. If specified, these secrets will be passed to individual puller implementations for them to use. More info: https://kubernetes.io/docs/concepts/containers/images#specifying-imagepullsecrets-on-a-pod",
          "items": {
            "$ref": "#/components/schemas/io.k8s.api.core.v1.LocalObjectReference"
          },
          "type": "array",
          "x-kubernetes-list-map-keys": [
            "name"
          ],
          "x-kubernetes-list-type": "map",
          "x-kubernetes-patch-merge-key": "name",
          "x-kubernetes-patch-strategy": "merge"
        }"##]].assert_eq(&pretty(&spec["imagePullSecrets"]));
    expect![[r##"
        {
          "allOf": [
            {
              "$ref": "#/components/schemas/io.k8s.api.core.v1.PodSecurityContext"
            }
          ],
          "description": "SecurityContext holds pod-level security attributes and common container settings. Optional: Defaults to empty.  See type description for default values of each field."
        }"##]].assert_eq(&pretty(&spec["securityContext"]));
    let kinds = &schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"];
    expect![[r#"[{"group":"","kind":"Pod","version":"v1"}]"#]].assert_eq(&kinds.to_string());
}

/// The fields of a message: number and bytes; a varint is an empty field.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = varint(&mut bytes);
        let length = if key & 7 == 2 {
            usize::try_from(length).unwrap()
        } else {
            0
        };
        let (field, rest) = bytes.split_at(length);
        found.push((key >> 3, field));
        bytes = rest;
    }
    found
}

fn field(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    fields(bytes)
        .into_iter()
        .filter(|one| one.0 == number)
        .map(|one| one.1)
        .collect()
}

/// The value in 2 of the entry that has this name in 1.
fn entry<'b>(entries: &[&'b [u8]], name: &str) -> &'b [u8] {
    let found = entries
        .iter()
        .find(|one| field(one, 1) == [name.as_bytes()])
        .unwrap();
    field(found, 2)[0]
}

#[test]
fn v2_in_protocol_buffers() {
    let document = v2(&Kinds::default(), Form::Protobuf);
    assert_eq!(field(&document, 1), [b"2.0"]);
    let definitions = field(field(&document, 9)[0], 1);
    let json: Value = serde_json::from_slice(&v2(&Kinds::default(), Form::Json)).unwrap();
    assert_eq!(
        definitions.len(),
        json["definitions"].as_object().unwrap().len()
    );
    let spec = entry(&definitions, "io.k8s.api.core.v1.PodSpec");
    assert_eq!(field(spec, 19), [b"containers"]);
    let properties = field(field(spec, 25)[0], 1);
    let extensions = field(entry(&properties, "containers"), 31);
    let key = entry(&extensions, "x-kubernetes-patch-merge-key");
    assert_eq!(field(key, 2), [b"name\n"]);
    let paths = field(field(&document, 8)[0], 2);
    let pod = entry(&paths, "/api/v1/namespaces/{namespace}/pods/{name}");
    assert_eq!(field(field(pod, 8)[0], 5), [b"patchCoreV1NamespacedPod"]);
}

#[test]
fn v3_in_protocol_buffers() {
    let document = v3_group(&Kinds::default(), "apis/apps/v1", Form::Protobuf).unwrap();
    assert_eq!(field(&document, 1), [b"3.0.0"]);
    let schemas = field(field(field(&document, 5)[0], 1)[0], 1);
    let spec = field(entry(&schemas, "io.k8s.api.apps.v1.DeploymentSpec"), 1)[0];
    assert_eq!(field(spec, 23), [&b"selector"[..], b"template"]);
    let paths = field(field(&document, 4)[0], 1);
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale";
    let scale = entry(&paths, path);
    let id = b"patchAppsV1NamespacedDeploymentScale";
    assert_eq!(field(field(scale, 10)[0], 5), [&id[..]]);
}

#[test]
fn forms_are_negotiated() {
    let deprecated = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let (json, protobuf) = (Some(Form::Json), Some(Form::Protobuf));
    let v2 = |accept: &str| Documents::V2.negotiate(accept);
    assert_eq!(v2(""), json);
    assert_eq!(v2("*/*"), json);
    assert_eq!(v2(deprecated), protobuf);
    assert_eq!(
        v2(&format!("application/json;q=0.5, {deprecated}")),
        protobuf
    );
    assert_eq!(v2(&format!("{deprecated};q=0.5,*/*")), json);
    assert_eq!(v2("text/html"), None);
    assert_eq!(Documents::V3.negotiate(deprecated), None);
    let v3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    assert_eq!(Documents::V3.negotiate(v3), protobuf);
    assert_eq!(Documents::V3.content_type(Form::Protobuf), v3);
}

/// What all methods of a path take stands beside them; what v2 shares, it shares by name.
#[test]
fn common_parameters_stand_at_the_path() {
    let document: Value = serde_json::from_slice(&v2(&Kinds::default(), Form::Json)).unwrap();
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/log"];
    let parameters = path["parameters"].as_array().unwrap();
    let is_shared = |one: &Value| one["$ref"] == "#/parameters/namespace-vgWSWtn3";
    assert!(parameters.iter().any(is_shared));
    assert!(path["get"].get("parameters").is_none());
    assert_eq!(document["parameters"]["follow-9OIXh_2R"]["type"], "boolean");
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path}"];
    assert_eq!(
        path["options"]["operationId"],
        "connectCoreV1OptionsNamespacedPodProxyWithPath"
    );
}

/// Only v3 speaks of defaults; unions are in both.
#[test]
fn defaults_and_unions() {
    let v3 = document("api/v1");
    let port = &v3["components"]["schemas"]["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!(port["containerPort"]["default"], 0);
    let v2: Value = serde_json::from_slice(&v2(&Kinds::default(), Form::Json)).unwrap();
    let port = &v2["definitions"]["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert!(port["protocol"].get("default").is_none());
    let profile = &v2["definitions"]["io.k8s.api.core.v1.SeccompProfile"];
    expect![[r#"[{"discriminator":"type","fields-to-discriminateBy":{"localhostProfile":"LocalhostProfile"}}]"#]]
        .assert_eq(&profile["x-kubernetes-unions"].to_string());
}
