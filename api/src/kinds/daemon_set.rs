//! Daemon sets: one pod on each node that fits.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "DaemonSet",
            plural: "daemonsets",
            singular: "daemonset",
            schema: "io.k8s.api.apps.v1.DaemonSet",
        },
        &Plain,
    )
};
