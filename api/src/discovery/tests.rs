//! Discovery in both forms, and that they agree.

use super::*;
use expect_test::expect;

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn aggregated_is_negotiated() {
    let v2 = AGGREGATED_V2;
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert!(wants_aggregated(v2));
    assert!(wants_aggregated(&format!("{v2},{beta},application/json")));
    assert!(wants_aggregated(&format!("{beta}, {v2}, application/json")));
    assert!(wants_aggregated(&format!("application/json;q=0.5,{v2}")));
    assert!(!wants_aggregated(&format!("{beta},application/json")));
    assert!(!wants_aggregated(&format!("application/json,{v2}")));
    assert!(!wants_aggregated(""));
    assert!(!wants_aggregated("*/*"));
    assert!(!wants_aggregated("application/vnd.kubernetes.protobuf"));
}

#[test]
fn versions_and_groups() {
    expect![[r#"{"kind":"APIVersions","serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}],"versions":["v1"]}"#]].assert_eq(&api_versions("10.0.0.1:6443").to_string());
    let groups = group_list();
    let names = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["name"]);
    assert!(names.clone().all(|name| name != ""));
    assert_eq!(group("nothing"), None);
    assert_eq!(group(""), None);
}

#[test]
fn resources_of_a_version() {
    let list = resource_list("", "v1").unwrap();
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
    assert_eq!(resource_list("", "v2"), None);
}

/// Every row of the catalogue is in both forms, with the same verbs.
#[test]
fn both_forms_agree() {
    let mut seen = 0;
    for document in [aggregated_core(), aggregated_groups()] {
        for group in document["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str().unwrap_or("");
            for version in group["versions"].as_array().unwrap() {
                let list = resource_list(name, version["version"].as_str().unwrap()).unwrap();
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
