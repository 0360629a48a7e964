//! What one metric proposes, from what was read of it. Pure. Upstream's words in everything that
//! goes wrong, as conditions and events show it.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricSpec,
    MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource, ObjectMetricStatus,
    PodsMetricSource, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use coracle_api::quantity::{Format, Quantity};

use super::calculate::{self, Answer, Situation};
use super::metrics::{PodMetrics, milli};
use crate::labels::as_go;

/// Of metrics of a kind that nobody knows.
pub(super) const UNKNOWN: &str = "InvalidMetricSourceType";

/// What was read of a metric; a failure in words.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    OfPods(Result<PodMetrics, String>),
    OfObject(Result<i64, String>),
    External(Result<Vec<i64>, String>),
    /// Of a kind that nobody knows.
    Unknown,
}

/// How many pods, and because of what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub replicas: i32,
    pub name: String,
    pub status: MetricStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Of the event and of the condition.
    pub reason: &'static str,
    /// Of the event.
    pub message: String,
    /// For what is said of all metrics together.
    pub summary: String,
}

type Outcome = Result<(i32, MetricValueStatus, String), String>;

pub(super) fn propose(
    spec: &MetricSpec,
    reading: Reading,
    situation: Situation<'_>,
    namespace: &str,
) -> Result<Proposal, Failure> {
    let mut status = MetricStatus {
        type_: spec.type_.clone(),
        ..MetricStatus::default()
    };
    let (reason, place, outcome) = match reading {
        Reading::OfPods(read) => of_pods(spec, read, situation, &mut status),
        Reading::OfObject(read) => of_object(spec, read, situation, namespace, &mut status),
        Reading::External(read) => external(spec, read, situation, namespace, &mut status),
        Reading::Unknown => {
            let message = format!("unknown metric source type {:?}", spec.type_);
            return Err(Failure {
                reason: UNKNOWN,
                summary: message.clone(),
                message,
            });
        }
    };
    match outcome {
        Ok((replicas, name)) => Ok(Proposal {
            replicas,
            name,
            status,
        }),
        Err(message) => Err(Failure {
            reason,
            summary: format!("failed to get {place} metric value: {message}"),
            message,
        }),
    }
}

/// The reason if it fails, what is said to have failed, and replicas with the metric's name.
type Part = (&'static str, String, Result<(i32, String), String>);

fn of_pods(
    spec: &MetricSpec,
    read: Result<PodMetrics, String>,
    situation: Situation<'_>,
    status: &mut MetricStatus,
) -> Part {
    if let Some(source) = &spec.resource {
        let outcome = resource(&source.name, None, &source.target, read, situation);
        let outcome = outcome.map(|(replicas, current, name)| {
            status.resource = Some(ResourceMetricStatus {
                name: source.name.clone(),
                current,
            });
            (replicas, name)
        });
        let place = format!("{} resource", source.name);
        return ("FailedGetResourceMetric", place, outcome);
    }
    if let Some(source) = &spec.container_resource {
        let container = Some(source.container.as_str());
        let outcome = resource(&source.name, container, &source.target, read, situation);
        let outcome = outcome.map(|(replicas, current, name)| {
            status.container_resource = Some(ContainerResourceMetricStatus {
                name: source.name.clone(),
                container: source.container.clone(),
                current,
            });
            (replicas, name)
        });
        let place = format!("{} container", source.container);
        return ("FailedGetContainerResourceMetric", place, outcome);
    }
    let source = spec.pods.clone().unwrap_or_default();
    let outcome = pods(&source, read, situation).map(|(replicas, current, name)| {
        status.pods = Some(PodsMetricStatus {
            metric: source.metric.clone(),
            current,
        });
        (replicas, name)
    });
    ("FailedGetPodsMetric", "pods".to_owned(), outcome)
}

fn resource(
    name: &str,
    container: Option<&str>,
    target: &MetricTarget,
    read: Result<PodMetrics, String>,
    situation: Situation<'_>,
) -> Outcome {
    let read = read.map_err(|why| format!("unable to get metrics for resource {name}: {why}"));
    // As whoever serves it writes it.
    let format = match name {
        "memory" => Format::BinarySi,
        _ => Format::DecimalSi,
    };
    if let Some(wanted) = &target.average_value {
        let answer = read
            .and_then(|read| calculate::average(situation, read, milli(wanted), name))
            .map_err(|why| format!("failed to get {name} usage: {why}"))?;
        let current = MetricValueStatus {
            average_value: Some(amount(answer.milli, format)),
            ..MetricValueStatus::default()
        };
        return Ok((answer.replicas, current, format!("{name} resource")));
    }
    let Some(wanted) = target.average_utilization else {
        return Err(
            "invalid resource metric source: neither an average utilization target nor an \
             average value (usage) target was set"
                .to_owned(),
        );
    };
    let answer = read
        .and_then(|read| calculate::utilization(situation, read, wanted, name, container))
        .map_err(|why| format!("failed to get {name} utilization: {why}"))?;
    let current = MetricValueStatus {
        average_utilization: Some(answer.percent),
        average_value: Some(amount(answer.milli, format)),
        value: None,
    };
    let of_what = match container {
        Some(_) => "container resource",
        None => "resource",
    };
    let name = format!("{name} {of_what} utilization (percentage of request)");
    Ok((answer.replicas, current, name))
}

fn pods(
    source: &PodsMetricSource,
    read: Result<PodMetrics, String>,
    situation: Situation<'_>,
) -> Outcome {
    let name = &source.metric.name;
    let read = read.map_err(|why| format!("unable to get metric {name}: {why}"))?;
    let wanted = source.target.average_value.as_ref().map_or(0, milli);
    let answer = calculate::average(situation, read, wanted, "")?;
    Ok((
        answer.replicas,
        average(answer),
        format!("pods metric {name}"),
    ))
}

fn of_object(
    spec: &MetricSpec,
    read: Result<i64, String>,
    situation: Situation<'_>,
    namespace: &str,
    status: &mut MetricStatus,
) -> Part {
    let source = spec.object.clone().unwrap_or_default();
    let outcome = object(&source, read, situation, namespace);
    let outcome = outcome.map(|(replicas, current, name)| {
        status.object = Some(ObjectMetricStatus {
            current,
            described_object: source.described_object.clone(),
            metric: source.metric.clone(),
        });
        (replicas, name)
    });
    ("FailedGetObjectMetric", "object".to_owned(), outcome)
}

fn object(
    source: &ObjectMetricSource,
    read: Result<i64, String>,
    situation: Situation<'_>,
    namespace: &str,
) -> Outcome {
    let (name, described) = (&source.metric.name, &source.described_object);
    let (kind, target) = (&described.kind, &source.target);
    let read = read.map_err(|why| {
        let object = &described.name;
        format!("unable to get metric {name}: {why} on {kind} {namespace}/{object}")
    });
    match (target.type_.as_str(), &target.value, &target.average_value) {
        ("Value", Some(wanted), _) => {
            let answer = calculate::value(situation, read?, milli(wanted))?;
            let name = format!("{kind} metric {name}");
            Ok((answer.replicas, whole(answer), name))
        }
        ("AverageValue", _, Some(wanted)) => {
            let read = read.map_err(|why| format!("failed to get {name} object metric: {why}"))?;
            let answer = calculate::value_per_pod(situation, read, milli(wanted));
            let name = external_name(name, source.metric.selector.as_ref());
            Ok((answer.replicas, average(answer), name))
        }
        _ => Err(
            "invalid object metric source: neither a value target nor an average value target \
             was set"
                .to_owned(),
        ),
    }
}

fn external(
    spec: &MetricSpec,
    read: Result<Vec<i64>, String>,
    situation: Situation<'_>,
    namespace: &str,
    status: &mut MetricStatus,
) -> Part {
    let source = spec.external.clone().unwrap_or_default();
    let outcome = external_value(&source, read, situation, namespace);
    let outcome = outcome.map(|(replicas, current, name)| {
        status.external = Some(ExternalMetricStatus {
            metric: source.metric.clone(),
            current,
        });
        (replicas, name)
    });
    let place = format!("{} external", source.metric.name);
    ("FailedGetExternalMetric", place, outcome)
}

fn external_value(
    source: &ExternalMetricSource,
    read: Result<Vec<i64>, String>,
    situation: Situation<'_>,
    namespace: &str,
) -> Outcome {
    let (name, selector) = (&source.metric.name, source.metric.selector.as_ref());
    let total = read
        .map(|all| all.iter().fold(0_i64, |sum, one| sum.saturating_add(*one)))
        .map_err(|why| {
            let selector = selector.map_or("nil".to_owned(), as_go);
            format!("unable to get external metric {namespace}/{name}/{selector}: {why}")
        });
    let shown = external_name(name, selector);
    if let Some(wanted) = &source.target.average_value {
        let total = total.map_err(|why| format!("failed to get {name} external metric: {why}"))?;
        let answer = calculate::value_per_pod(situation, total, milli(wanted));
        return Ok((answer.replicas, average(answer), shown));
    }
    let Some(wanted) = &source.target.value else {
        return Err(
            "invalid external metric source: neither a value target nor an average value target \
             was set"
                .to_owned(),
        );
    };
    let answer = total
        .and_then(|total| calculate::value(situation, total, milli(wanted)))
        .map_err(|why| format!("failed to get external metric {name}: {why}"))?;
    Ok((answer.replicas, whole(answer), shown))
}

fn external_name(name: &str, selector: Option<&LabelSelector>) -> String {
    let selector = selector.map_or("nil".to_owned(), as_go);
    format!("external metric {name}({selector})")
}

fn amount(milli: i64, format: Format) -> Text {
    Text(Quantity::from_milli(milli, format).to_string())
}

fn average(answer: Answer) -> MetricValueStatus {
    MetricValueStatus {
        average_value: Some(amount(answer.milli, Format::DecimalSi)),
        ..MetricValueStatus::default()
    }
}

fn whole(answer: Answer) -> MetricValueStatus {
    MetricValueStatus {
        value: Some(amount(answer.milli, Format::DecimalSi)),
        ..MetricValueStatus::default()
    }
}
