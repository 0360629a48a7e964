//! The revision gets its place in the stored bytes.

use super::*;
use serde_json::json;

#[test]
fn the_revision_has_its_place_wherever_metadata_is() {
    let object = Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "resourceVersion": "7", "labels": { "b": "c" } },
        "data": { "metadata": "x" },
    }))
    .unwrap();
    let (mut bytes, place) = encode(&object);
    bytes.splice(place..place, *b"42");
    let read: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(read["metadata"]["resourceVersion"], "42");
    assert_eq!(read["metadata"]["labels"]["b"], "c");
    assert_eq!(read["data"]["metadata"], "x");
}
