//! What the measured pods ask of the scheduler.

use crate::scratch::{LABEL, Scratch};
use anyhow::Context;
use k8s_openapi::api::core::v1::{
    Affinity, Container, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity, PodSpec,
    ResourceRequirements, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use std::collections::BTreeMap;

pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Pods of lower priority that fill a node, each with an equal part of its processors.
pub const VICTIMS_PER_NODE: usize = 4;
const VICTIM_CPU: &str = "16";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Ask for nothing.
    Plain,
    /// Spread over zones, no more than one apart.
    Spread,
    /// In the zone of their kind, and away from each other's node where that can be.
    Affinity,
    /// Take the place of pods of lower priority, which fill all nodes.
    Preempt,
}

impl Shape {
    /// How many pods of this shape the nodes take.
    pub fn room(self, nodes: usize) -> usize {
        match self {
            Self::Preempt => nodes * VICTIMS_PER_NODE,
            Self::Plain | Self::Spread | Self::Affinity => nodes * crate::fake_nodes::PODS_PER_NODE,
        }
    }

    /// The pod that is measured, but for its name.
    pub fn pod(self, scratch: &Scratch) -> Pod {
        let mut pod = plain(scratch);
        let spec = pod.spec.get_or_insert_default();
        match self {
            Self::Plain => {}
            Self::Spread => spec.topology_spread_constraints = Some(vec![spread(scratch)]),
            Self::Affinity => spec.affinity = Some(affinity(scratch)),
            Self::Preempt => {
                spec.priority_class_name = Some(class(scratch, true));
                ask_for_cpu(spec);
            }
        }
        pod
    }
}

/// What fills a node before it is preempted; gone as soon as it is deleted.
pub fn victim(scratch: &Scratch, number: usize) -> Pod {
    let mut pod = plain(scratch);
    pod.metadata.name = Some(format!("victim-{number}"));
    let spec = pod.spec.get_or_insert_default();
    spec.priority_class_name = Some(class(scratch, false));
    spec.termination_grace_period_seconds = Some(0);
    ask_for_cpu(spec);
    pod
}

fn class(scratch: &Scratch, is_high: bool) -> String {
    let which = if is_high { "high" } else { "low" };
    format!("{}-{which}", scratch.name)
}

pub async fn make_classes(scratch: &Scratch) -> anyhow::Result<()> {
    let api: Api<PriorityClass> = Api::all(scratch.client.clone());
    for (is_high, value) in [(true, 1000), (false, -1000)] {
        let made = PriorityClass {
            metadata: ObjectMeta {
                name: Some(class(scratch, is_high)),
                labels: Some(scratch.labels()),
                ..ObjectMeta::default()
            },
            value: Some(value),
            ..PriorityClass::default()
        };
        api.create(&PostParams::default(), &made)
            .await
            .context("cannot make a priority class")?;
    }
    Ok(())
}

fn ask_for_cpu(spec: &mut PodSpec) {
    let cpu = BTreeMap::from([("cpu".to_owned(), Quantity(VICTIM_CPU.to_owned()))]);
    for container in &mut spec.containers {
        container.resources = Some(ResourceRequirements {
            requests: Some(cpu.clone()),
            ..ResourceRequirements::default()
        });
    }
}

fn ours(scratch: &Scratch) -> Option<LabelSelector> {
    Some(LabelSelector {
        match_labels: Some(BTreeMap::from([(LABEL.to_owned(), scratch.name.clone())])),
        ..LabelSelector::default()
    })
}

fn spread(scratch: &Scratch) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        label_selector: ours(scratch),
        max_skew: 1,
        topology_key: ZONE.to_owned(),
        when_unsatisfiable: "DoNotSchedule".to_owned(),
        ..TopologySpreadConstraint::default()
    }
}

fn affinity(scratch: &Scratch) -> Affinity {
    let term = |key: &str| PodAffinityTerm {
        label_selector: ours(scratch),
        topology_key: key.to_owned(),
        ..PodAffinityTerm::default()
    };
    Affinity {
        pod_affinity: Some(PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(vec![term(ZONE)]),
            ..PodAffinity::default()
        }),
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                WeightedPodAffinityTerm {
                    weight: 1,
                    pod_affinity_term: term(HOSTNAME),
                },
            ]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// Bound to our nodes only; also while these still carry the taint of new nodes.
fn plain(scratch: &Scratch) -> Pod {
    Pod {
        metadata: ObjectMeta {
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            node_selector: Some(scratch.labels()),
            containers: vec![Container {
                name: "idle".to_owned(),
                image: Some("registry.k8s.io/pause:3.10".to_owned()),
                ..Container::default()
            }],
            tolerations: Some(vec![Toleration {
                key: Some("node.kubernetes.io/not-ready".to_owned()),
                operator: Some("Exists".to_owned()),
                ..Toleration::default()
            }]),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}
