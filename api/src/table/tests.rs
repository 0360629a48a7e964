//! Tables have a cell for every column.

use super::*;
use crate::catalogue;
use expect_test::expect;

fn pod() -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "job", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "containers": [{ "name": "a" }] },
        "status": { "phase": "Succeeded" },
    }))
    .unwrap()
}

#[test]
fn a_table_of_pods() {
    let pods = catalogue::find("", "v1", "pods").unwrap();
    let metadata = json!({ "resourceVersion": "7" });
    let mut table = build(pods, [&pod()], metadata, Include::Metadata, true, 5);
    let columns = table["columnDefinitions"].take();
    let names: Vec<&str> = columns
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    expect![
        "Name | Ready | Status | Restarts | Age | IP | Node | Nominated Node | Readiness Gates"
    ]
    .assert_eq(&names.join(" | "));
    expect![[r#"{"description":"The address of the pod, empty until it has one.","format":"","name":"IP","priority":1,"type":"string"}"#]].assert_eq(&columns[5].to_string());
    expect![[r#"
        {
          "apiVersion": "meta.k8s.io/v1",
          "columnDefinitions": null,
          "kind": "Table",
          "metadata": {
            "resourceVersion": "7"
          },
          "rows": [
            {
              "cells": [
                "job",
                "0/1",
                "Succeeded",
                "0",
                "5s",
                "<none>",
                "<none>",
                "<none>",
                "<none>"
              ],
              "conditions": [
                {
                  "message": "The pod has completed successfully.",
                  "reason": "Succeeded",
                  "status": "True",
                  "type": "Completed"
                }
              ],
              "object": {
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata",
                "metadata": {
                  "creationTimestamp": "1970-01-01T00:00:00Z",
                  "name": "job"
                }
              }
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&table).unwrap());
}

#[test]
fn what_a_row_carries_of_its_object() {
    let pods = catalogue::find("", "v1", "pods").unwrap();
    assert!(row(pods, &pod(), Include::None, 5).get("object").is_none());
    assert_eq!(
        row(pods, &pod(), Include::Object, 5)["object"],
        pod().into_value()
    );
    assert_eq!(Include::parse("Everything"), None);
    assert_eq!(Include::parse(""), Some(Include::Metadata));
}

#[test]
fn every_kind_has_a_cell_a_column() {
    let empty = Object::new("v1", "Any");
    for resource in catalogue::all() {
        let cells = resource.rules.cells(&empty, 0).len();
        // Upstream gives the rows of addresses an age and no column for it.
        let columns = resource.rules.columns().len() + usize::from(resource.kind == "IPAddress");
        assert_eq!(cells, columns, "{resource:?}");
    }
}
