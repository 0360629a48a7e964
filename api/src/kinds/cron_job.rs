//! Cron jobs: jobs made by the clock.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["cj"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "batch",
        "v1",
        Names {
            kind: "CronJob",
            plural: "cronjobs",
            singular: "cronjob",
            schema: "io.k8s.api.batch.v1.CronJob",
        },
        &Plain,
    )
};
