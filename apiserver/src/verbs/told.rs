//! The answer to a list of what is told when asked and never stored.

use super::asked::Asked;
use crate::respond::Target;
use crate::tunnel::Body;
use coracle_api::object::Object;
use coracle_api::table;
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// All at once, in the form that the client takes. There is no revision of such a list.
pub fn list(asked: &Asked<'_>, objects: Vec<Object>) -> Response<Body> {
    let (row, include, now) = (asked.resource, asked.shape.include, asked.shape.now);
    let list = match asked.shape.target {
        Target::Table => table::build(row, &objects, json!({}), include, true, now),
        Target::Object => {
            let items: Vec<Value> = objects.into_iter().map(item).collect();
            json!({
                "kind": format!("{}List", row.kind), "apiVersion": row.api_version(),
                "metadata": {}, "items": items,
            })
        }
        _ => {
            let items: Vec<Value> = objects.iter().map(table::partial_metadata).collect();
            json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": {}, "items": items,
            })
        }
    };
    asked.shape.document(StatusCode::OK, &list)
}

/// In a list the kind is said once.
fn item(mut object: Object) -> Value {
    object.remove(&["apiVersion"]);
    object.remove(&["kind"]);
    object.into_value()
}
