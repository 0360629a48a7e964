//! Component statuses: the health of the control plane's parts. Answered by the server when asked,
//! never stored.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["cs"],
    verbs: &["get", "list"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "ComponentStatus",
            plural: "componentstatuses",
            singular: "componentstatus",
            schema: "io.k8s.api.core.v1.ComponentStatus",
        },
        &Plain,
    )
};
