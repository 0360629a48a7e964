//! What follows from the metrics together, and when they are asked at all. Pure.

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, MetricStatus};

use super::behaviour::Bounds;
use super::calculate::Tolerances;
use super::metrics::milli;
use super::propose::{Failure, Proposal};

/// Before any metric is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Somebody has set the target to nothing, and it stays so.
    Off,
    /// The bounds alone say what to do, and why.
    Bound(i32, &'static str),
    Measure,
}

pub(super) fn first(current: i32, bounds: Bounds) -> First {
    if current == 0 {
        First::Off
    } else if current > bounds.max {
        First::Bound(
            bounds.max,
            "Current number of replicas above Spec.MaxReplicas",
        )
    } else if current < bounds.min {
        First::Bound(
            bounds.min,
            "Current number of replicas below Spec.MinReplicas",
        )
    } else {
        First::Measure
    }
}

pub(super) fn bounds(autoscaler: &HorizontalPodAutoscaler) -> Bounds {
    Bounds {
        min: autoscaler.spec.min_replicas.unwrap_or(1),
        max: autoscaler.spec.max_replicas,
    }
}

pub(super) fn tolerances(autoscaler: &HorizontalPodAutoscaler) -> Tolerances {
    let mut tolerances = Tolerances::default();
    let behavior = autoscaler.spec.behavior.as_ref();
    let Some(behavior) = behavior else {
        return tolerances;
    };
    let given = |rules: &Option<_>| -> Option<f64> {
        let rules: &k8s_openapi::api::autoscaling::v2::HPAScalingRules = rules.as_ref()?;
        rules
            .tolerance
            .as_ref()
            .map(|given| milli(given) as f64 / 1000.0)
    };
    tolerances.down = given(&behavior.scale_down).unwrap_or(tolerances.down);
    tolerances.up = given(&behavior.scale_up).unwrap_or(tolerances.up);
    tolerances
}

/// Whether the target names a version of a group.
pub(super) fn has_version(autoscaler: &HorizontalPodAutoscaler) -> bool {
    let version = autoscaler.spec.scale_target_ref.api_version.as_deref();
    version.unwrap_or_default().matches('/').count() <= 1
}

/// What all metrics of an autoscaler come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// The most that any of them asks for, and which; `None` where nothing can be said.
    pub wanted: Option<(i32, String)>,
    /// One for each metric, empty for those that failed.
    pub statuses: Vec<MetricStatus>,
    /// The first that failed.
    pub failure: Option<Failure>,
    pub error: Option<String>,
}

/// Where a metric fails the others may add pods, and take none away.
pub(super) fn together(outcomes: Vec<Result<Proposal, Failure>>, current: i32) -> Measured {
    let (count, mut failed) = (outcomes.len(), 0);
    let mut measured = Measured::default();
    for outcome in outcomes {
        match outcome {
            Ok(proposal) => {
                measured.statuses.push(proposal.status);
                let most = measured.wanted.as_ref().map_or(0, |(most, _)| *most);
                if most == 0 || proposal.replicas > most {
                    measured.wanted = Some((proposal.replicas, proposal.name));
                }
            }
            Err(failure) => {
                measured.statuses.push(MetricStatus::default());
                failed += 1;
                measured.failure.get_or_insert(failure);
            }
        }
    }
    measured.error = measured.failure.as_ref().map(|first| {
        let first = &first.summary;
        format!("invalid metrics ({failed} invalid out of {count}), first error is: {first}")
    });
    let shrinks = measured
        .wanted
        .as_ref()
        .is_none_or(|(most, _)| *most < current);
    if failed > 0 && shrinks {
        measured.wanted = None;
    }
    measured
}

/// Why the number changes.
pub(super) fn reason(current: i32, wanted: i32, metric: &str) -> String {
    if wanted > current {
        format!("{metric} above target")
    } else if wanted < current {
        "All metrics below target".to_owned()
    } else {
        String::new()
    }
}
