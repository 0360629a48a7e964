//! Asks for each metric of an autoscaler, and says in its conditions what came of it.

use coracle_api::scale::selector_text;
use coracle_client::ObjectKey;
use coracle_client::events::EventType;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, ObjectMetricSource,
};

use super::calculate::Situation;
use super::counts::{Action, COUNTS, Fault};
use super::metrics::Query;
use super::plan::{self, Measured};
use super::propose::{Failure, Proposal, Reading, UNKNOWN, propose};
use super::{Controller, Scale, Status, execute, overlap, status};

impl Controller {
    pub(super) async fn measure(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        scale: &Scale,
        status: &mut Status,
    ) -> Measured {
        let selector = scale
            .status
            .as_ref()
            .and_then(|status| status.selector.as_deref());
        let selector = selector.unwrap_or_default();
        let parsed = overlap::parse(selector).and_then(|parsed| {
            let mut pods = self.pods.list_namespace(&key.namespace);
            pods.retain(|pod| overlap::selects(&parsed, pod));
            self.selectors.claim(key, &parsed, selector, &pods)?;
            Ok((parsed, pods))
        });
        let (parsed, pods) = match parsed {
            Ok(found) => found,
            Err(fault) => {
                self.tell(autoscaler, EventType::Warning, fault.event, &fault.message);
                let (reason, text) = (fault.condition, &fault.text);
                self.set(status, status::ACTIVE, false, reason, text);
                return Measured {
                    error: Some(fault.message),
                    ..Measured::default()
                };
            }
        };
        let situation = Situation {
            pods: &pods,
            spec_replicas: execute::replicas(scale),
            status_replicas: scale.status.as_ref().map_or(0, |status| status.replicas),
            tolerances: plan::tolerances(autoscaler),
            now: self.clock.now(),
        };
        let (selector, mut outcomes) = (parsed.to_string(), Vec::new());
        for spec in autoscaler.spec.metrics.iter().flatten() {
            let begun = self.clock.monotonic();
            let reading = self.read(spec, &key.namespace, &selector).await;
            let outcome = propose(spec, reading, situation, &key.namespace);
            let (action, fault) = counted(autoscaler, &outcome);
            let took = self.clock.monotonic().duration_since(begun);
            COUNTS.metric(action, fault, &spec.type_, took);
            if let Err(failure) = &outcome {
                let (reason, message) = (failure.reason, &failure.message);
                self.tell(autoscaler, EventType::Warning, reason, message);
            }
            outcomes.push(outcome);
        }
        let measured = plan::together(outcomes, situation.spec_replicas);
        match (&measured.wanted, &measured.failure) {
            (Some((_, metric)), _) => {
                let text = "the HPA was able to successfully calculate a replica count from";
                let text = format!("{text} {metric}");
                self.set(status, status::ACTIVE, true, "ValidMetricFound", &text);
            }
            (None, Some(first)) => {
                let why = &first.message;
                let text = format!("the HPA was unable to compute the replica count: {why}");
                self.set(status, status::ACTIVE, false, first.reason, &text);
            }
            (None, None) => {} // No metrics, which defaults keep out.
        }
        measured
    }

    async fn read(&self, spec: &MetricSpec, namespace: &str, selector: &str) -> Reading {
        let of_pods = |name, container| self.metrics.resource(namespace, selector, name, container);
        match (spec.type_.as_str(), spec) {
            (
                "Resource",
                MetricSpec {
                    resource: Some(source),
                    ..
                },
            ) => Reading::OfPods(of_pods(&source.name, None).await),
            (
                "ContainerResource",
                MetricSpec {
                    container_resource: Some(source),
                    ..
                },
            ) => Reading::OfPods(of_pods(&source.name, Some(source.container.as_str())).await),
            (
                "Pods",
                MetricSpec {
                    pods: Some(source), ..
                },
            ) => {
                let labels = labels_of(&source.metric);
                let query = query(namespace, &source.metric, &labels);
                Reading::OfPods(self.metrics.of_pods(query, selector).await)
            }
            (
                "Object",
                MetricSpec {
                    object: Some(source),
                    ..
                },
            ) => Reading::OfObject(self.read_object(source, namespace).await),
            (
                "External",
                MetricSpec {
                    external: Some(source),
                    ..
                },
            ) => {
                let labels = labels_of(&source.metric);
                let query = query(namespace, &source.metric, &labels);
                Reading::External(self.metrics.external(query).await)
            }
            _ => Reading::Unknown,
        }
    }

    /// Metrics of the namespace itself have a place of their own.
    async fn read_object(
        &self,
        source: &ObjectMetricSource,
        namespace: &str,
    ) -> Result<i64, String> {
        let labels = labels_of(&source.metric);
        let query = query(namespace, &source.metric, &labels);
        let described = &source.described_object;
        let version = described.api_version.as_deref().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        if group.is_empty() && described.kind == "Namespace" {
            return self.metrics.of_object(query, None).await;
        }
        let found = self.kinds.find_in_group(version, &described.kind).await;
        let found = found.map_err(|error| {
            let kind = match group {
                "" => described.kind.clone(),
                group => format!("{}.{group}", described.kind),
            };
            let why = error.text();
            format!(
                "unable to fetch metrics from custom metrics API: unable to map kind {kind} to \
                 resource: {why}"
            )
        })?;
        let resource = found.qualified();
        let object = Some((resource.as_str(), described.name.as_str()));
        self.metrics.of_object(query, object).await
    }
}

/// Upstream compares with what the last look has found.
fn counted(
    autoscaler: &HorizontalPodAutoscaler,
    outcome: &Result<Proposal, Failure>,
) -> (Action, Fault) {
    let status = autoscaler.status.as_ref();
    let last = status.and_then(|status| status.current_replicas);
    match outcome {
        Ok(proposal) => {
            let action = Action::of(last.unwrap_or(0), proposal.replicas);
            (action, Fault::None)
        }
        Err(failure) if failure.reason == UNKNOWN => (Action::None, Fault::Spec),
        Err(_) => (Action::None, Fault::Internal),
    }
}

fn query<'a>(namespace: &'a str, metric: &'a MetricIdentifier, labels: &'a str) -> Query<'a> {
    Query {
        namespace,
        metric: &metric.name,
        labels,
    }
}

/// As the text of a label query; empty without a selector.
fn labels_of(metric: &MetricIdentifier) -> String {
    let selector = metric.selector.as_ref();
    let value = selector.and_then(|selector| serde_json::to_value(selector).ok());
    value.map_or(String::new(), |value| selector_text(&value))
}
