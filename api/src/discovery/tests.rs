//! Discovery in both forms, and that they agree.

use super::*;
use crate::catalogue;
use expect_test::expect;

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn aggregated_is_negotiated() {
    let form = |accept: &str| aggregated_form(accept);
    let v2 = Form::Json.aggregated();
    let protobuf = Form::Protobuf.aggregated();
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert_eq!(form(v2), Some(Form::Json));
    assert_eq!(form(protobuf), Some(Form::Protobuf));
    assert_eq!(form(&format!("{protobuf},{v2}")), Some(Form::Protobuf));
    assert_eq!(form(&format!("{protobuf};q=0.5,{v2}")), Some(Form::Json));
    assert_eq!(
        form(&format!("{beta}, {v2}, application/json")),
        Some(Form::Json)
    );
    // Whoever knows it gets it.
    assert_eq!(
        form(&format!("application/json,{v2};q=0.1")),
        Some(Form::Json)
    );
    assert_eq!(form(&format!("{v2};profile=nopeer")), Some(Form::Json));
    assert_eq!(form(&format!("{beta},application/json")), None);
    assert_eq!(form(""), None);
    assert_eq!(form("*/*"), None);
    assert_eq!(form("application/vnd.kubernetes.protobuf"), None);
}

/// No hash at all: what it is made of.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(STORAGE_HASH_BYTES, b'.');
    bytes
}

#[test]
fn storage_versions_are_told() {
    let hash = |group: &str, version: &str, name: &str| {
        let list = resource_list(&Kinds::default(), group, version, plain).unwrap();
        let all = list["resources"].as_array().unwrap().clone();
        let one = all.into_iter().find(|one| one["name"] == name).unwrap();
        one["storageVersionHash"].as_str().map(str::to_owned)
    };
    assert_eq!(
        hash("", "v1", "pods"),
        Some(BASE64_STANDARD.encode(plain(b"/v1/Pod")))
    );
    assert_eq!(hash("", "v1", "pods/status"), None);
    assert_eq!(hash("", "v1", "bindings"), None);
    assert_eq!(
        hash("events.k8s.io", "v1", "events"),
        hash("", "v1", "events")
    );
}

#[test]
fn aggregated_has_a_protobuf_form() {
    let bytes = aggregated_protobuf(&aggregated_groups(&Kinds::default())).unwrap();
    let name = "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList";
    let (meta, back) = protobuf::decode_as(&bytes, name).unwrap();
    assert_eq!(meta.api_version, "apidiscovery.k8s.io/v2");
    assert_eq!(back["items"], aggregated_groups(&Kinds::default())["items"]);
}

#[test]
fn versions_and_groups() {
    expect![[r#"{"kind":"APIVersions","serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}],"versions":["v1"]}"#]].assert_eq(&api_versions("10.0.0.1:6443").to_string());
    let groups = group_list(&Kinds::default());
    let names = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["name"]);
    assert!(names.clone().all(|name| name != ""));
    assert_eq!(group(&Kinds::default(), "nothing"), None);
    assert_eq!(group(&Kinds::default(), ""), None);
}

#[test]
fn resources_of_a_version() {
    let list = resource_list(&Kinds::default(), "", "v1", plain).unwrap();
    let find = |name: &str| {
        let all = list["resources"].as_array().unwrap();
        pretty(all.iter().find(|one| one["name"] == name).unwrap())
    };
    expect![[r#"
        {
          "kind": "ConfigMap",
          "name": "configmaps",
          "namespaced": true,
          "shortNames": [
            "cm"
          ],
          "singularName": "configmap",
          "storageVersionHash": "L3YxL0NvbmY=",
          "verbs": [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
          ]
        }"#]]
    .assert_eq(&find("configmaps"));
    expect![[r#"
        {
          "kind": "Pod",
          "name": "pods/status",
          "namespaced": true,
          "singularName": "",
          "verbs": [
            "get",
            "patch",
            "update"
          ]
        }"#]]
    .assert_eq(&find("pods/status"));
    assert_eq!(resource_list(&Kinds::default(), "", "v2", plain), None);
}

/// Every row of the catalogue is in both forms, with the same verbs.
#[test]
fn both_forms_agree() {
    let mut seen = 0;
    for document in [
        aggregated_core(&Kinds::default()),
        aggregated_groups(&Kinds::default()),
    ] {
        for group in document["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str().unwrap_or("");
            for version in group["versions"].as_array().unwrap() {
                let list = resource_list(
                    &Kinds::default(),
                    name,
                    version["version"].as_str().unwrap(),
                    plain,
                )
                .unwrap();
                let find = |name: &str| {
                    let all = list["resources"].as_array().unwrap();
                    all.iter().find(|one| one["name"] == name).unwrap().clone()
                };
                for resource in version["resources"].as_array().unwrap() {
                    let plural = resource["resource"].as_str().unwrap();
                    assert_eq!(find(plural)["verbs"], resource["verbs"]);
                    for sub in resource["subresources"].as_array().into_iter().flatten() {
                        let path = format!("{plural}/{}", sub["subresource"].as_str().unwrap());
                        assert_eq!(find(&path)["verbs"], sub["verbs"]);
                    }
                    seen += 1;
                }
            }
        }
    }
    assert_eq!(seen, catalogue::all().len());
}
