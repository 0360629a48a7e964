//! Horizontal pod autoscalers: as many pods as the load asks for.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "autoscaling",
        "v2",
        Names {
            kind: "HorizontalPodAutoscaler",
            plural: "horizontalpodautoscalers",
            singular: "horizontalpodautoscaler",
            schema: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        },
        &Plain,
    )
};

/// The view of the first version on the same objects.
pub const V1_ROW: Resource = Resource {
    version: "v1",
    schema: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
    is_second_view: true,
    ..ROW
};
