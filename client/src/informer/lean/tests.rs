use super::*;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::core::WatchEvent;

const MANAGED: &str = r#"[{"manager":"a","fieldsV1":{"f:metadata":{}}}]"#;

fn pod() -> String {
    let metadata = format!(
        r#"{{"name":"p","managedFields":{MANAGED},"labels":{{"managedFields":"kept"}},"uid":"\u0075"}}"#
    );
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{{"containers":[],"nodeName":"n"}}}}"#
    )
}

#[test]
fn all_but_managed_fields_is_there() {
    let whole: Pod = serde_json::from_str(&pod()).unwrap();
    assert!(whole.metadata.managed_fields.is_some());
    let Lean(lean) = serde_json::from_str::<Lean<Pod>>(&pod()).unwrap();
    let mut expected = whole;
    expected.metadata.managed_fields = None;
    assert_eq!(lean, expected);
    assert_eq!(lean.metadata.labels.unwrap()["managedFields"], "kept");
}

#[test]
fn it_need_not_come_in_any_order_nor_be_there_at_all() {
    let event = format!(r#"{{"object":{},"type":"ADDED"}}"#, pod());
    let event: WatchEvent<Lean<Pod>> = serde_json::from_str(&event).unwrap();
    let WatchEvent::Added(Lean(pod)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(pod.metadata.managed_fields, None);
    assert_eq!(pod.metadata.uid.as_deref(), Some("u"));
    let Lean(bare): Lean<Node> = serde_json::from_str(r#"{"metadata":null}"#).unwrap();
    assert_eq!(bare, Node::default());
}

#[test]
fn they_are_data_anywhere_else() {
    let text = r#"{"managedFields":1,"metadata":{},"data":{"metadata":"a","managedFields":"b"}}"#;
    let Lean(map): Lean<ConfigMap> = serde_json::from_str(text).unwrap();
    let data = map.data.unwrap();
    assert_eq!((&*data["metadata"], &*data["managedFields"]), ("a", "b"));
}

#[test]
fn what_is_no_object_is_refused() {
    for text in [
        "[]",
        "1",
        r#"{"metadata":[]}"#,
        r#"{"metadata":{"managedFields":"#,
    ] {
        assert!(serde_json::from_str::<Lean<Pod>>(text).is_err(), "{text}");
    }
}
