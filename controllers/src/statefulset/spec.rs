//! What a StatefulSet asks for, with the defaults that the server may have left out. Pure.

use crate::scaled::{Rounding, scaled};
use k8s_openapi::api::apps::v1::StatefulSetSpec;

/// Upstream's default for how many revisions are kept beside those in use.
const HISTORY_LIMIT: i32 = 10;

/// What becomes of claims whose pods are not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retention {
    pub delete_with_set: bool,
    pub delete_when_scaled: bool,
}

/// How pods get to the newest revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Whenever somebody deletes them.
    OnDelete,
    Rolling {
        /// How many of the lowest ordinals stay behind; `None` when the set does not say.
        partition: Option<i32>,
        /// `None` when the set does not say: then pods go one after the other.
        unavailable_max: Option<i32>,
    },
}

pub(super) fn replicas(spec: &StatefulSetSpec) -> i32 {
    spec.replicas.unwrap_or(1).max(0)
}

pub(super) fn start(spec: &StatefulSetSpec) -> i32 {
    let ordinals = spec.ordinals.as_ref();
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0)
}

/// Whether there is to be a pod with this ordinal.
pub(super) fn wants(spec: &StatefulSetSpec, ordinal: i32) -> bool {
    let start = i64::from(start(spec));
    (start..start + i64::from(replicas(spec))).contains(&i64::from(ordinal))
}

pub(super) fn is_parallel(spec: &StatefulSetSpec) -> bool {
    spec.pod_management_policy.as_deref() == Some("Parallel")
}

pub(super) fn min_ready_seconds(spec: &StatefulSetSpec) -> i32 {
    spec.min_ready_seconds.unwrap_or(0)
}

pub(super) fn history_limit(spec: &StatefulSetSpec) -> i32 {
    spec.revision_history_limit.unwrap_or(HISTORY_LIMIT)
}

pub(super) fn retention(spec: &StatefulSetSpec) -> Retention {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    let deletes = |value: Option<&String>| value.is_some_and(|value| value == "Delete");
    Retention {
        delete_with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        delete_when_scaled: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    }
}

pub(super) fn strategy(spec: &StatefulSetSpec) -> Strategy {
    let strategy = spec.update_strategy.as_ref();
    if strategy.and_then(|one| one.type_.as_deref()) == Some("OnDelete") {
        return Strategy::OnDelete;
    }
    let rolling = strategy.and_then(|one| one.rolling_update.as_ref());
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    Strategy::Rolling {
        partition: rolling.map(|rolling| rolling.partition.unwrap_or(0)),
        unavailable_max: unavailable
            .map(|value| scaled(value, replicas(spec), Rounding::Down).max(1)),
    }
}
