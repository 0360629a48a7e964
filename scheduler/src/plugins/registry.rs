//! The one list of all plugins, and how a profile is made of it.

use super::{
    default_binder, default_preemption, dynamic_resources, image_locality, inter_pod_affinity,
    node_affinity, node_declared_features, node_name, node_ports, node_resources,
    node_resources_balanced_allocation, node_resources_fit, node_unschedulable, node_volume_limits,
    pod_topology_spread, priority_sort, scheduling_gates, taint_toleration, volume_binding,
    volume_restrictions, volume_zone,
};
use crate::framework::{Point, Profile, SharedPlugin};
use crate::views::Views;
use coracle_client::Client;
use coracle_client::clock::Clock;
use k8s_openapi::api::core::v1::{NodeAffinity, TopologySpreadConstraint};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What plugins can be told. The defaults are upstream's.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub fit: node_resources_fit::Args,
    pub balanced: Vec<node_resources::Weighted>,
    pub added_affinity: NodeAffinity,
    pub inter_pod_affinity: inter_pod_affinity::Args,
    /// `None` for those of the system.
    pub spread: Option<Vec<TopologySpreadConstraint>>,
    pub volume_binding_timeout: Duration,
    pub preemption: default_preemption::Args,
    pub devices: dynamic_resources::Args,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            fit: node_resources_fit::Args::default(),
            balanced: node_resources::default_resources(),
            added_affinity: NodeAffinity::default(),
            inter_pod_affinity: inter_pod_affinity::Args::default(),
            spread: None,
            volume_binding_timeout: volume_binding::BINDING_MAX,
            preemption: default_preemption::Args::default(),
            devices: dynamic_resources::Args::default(),
        }
    }
}

/// What plugins work with.
#[derive(Clone, Copy)]
struct Tools<'a> {
    args: &'a Arguments,
    client: &'a Client,
    views: &'a Views,
}

/// A plugin: its name, its weight by default, the points at which it takes part, how it is made.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub weight: i64,
    pub points: &'static [Point],
    make: fn(Tools<'_>) -> SharedPlugin,
}

const FILTER: &[Point] = &[Point::PreFilter, Point::Filter];
const FILTER_AND_SCORE: &[Point] = &[
    Point::PreFilter,
    Point::Filter,
    Point::PreScore,
    Point::Score,
];

/// In upstream's order, with upstream's weights.
pub static ROWS: [Row; 20] = [
    row("SchedulingGates", 0, &[Point::PreEnqueue], |_| {
        Arc::new(scheduling_gates::SchedulingGates)
    }),
    row("PrioritySort", 0, &[Point::QueueSort], |_| {
        Arc::new(priority_sort::PrioritySort)
    }),
    row("NodeUnschedulable", 0, &[Point::Filter], |_| {
        Arc::new(node_unschedulable::NodeUnschedulable)
    }),
    row("NodeName", 0, &[Point::Filter], |_| {
        Arc::new(node_name::NodeName)
    }),
    row(
        "TaintToleration",
        3,
        &[Point::Filter, Point::PreScore, Point::Score],
        |_| Arc::new(taint_toleration::TaintToleration),
    ),
    row("NodeAffinity", 2, FILTER_AND_SCORE, |tools| {
        let added = tools.args.added_affinity.clone();
        Arc::new(node_affinity::NodeAffinity::new(added))
    }),
    row("NodePorts", 0, FILTER, |_| Arc::new(node_ports::NodePorts)),
    row("NodeResourcesFit", 1, FILTER_AND_SCORE, |tools| {
        let (args, offers) = (tools.args.fit.clone(), offers(tools));
        Arc::new(node_resources_fit::NodeResourcesFit::new(args, offers))
    }),
    row("VolumeRestrictions", 0, FILTER, |tools| {
        let volumes = Arc::clone(&tools.views.volumes);
        Arc::new(volume_restrictions::VolumeRestrictions::new(volumes))
    }),
    row("NodeVolumeLimits", 0, FILTER, |tools| {
        let volumes = Arc::clone(&tools.views.volumes);
        Arc::new(node_volume_limits::NodeVolumeLimits::new(volumes))
    }),
    row(
        "VolumeBinding",
        0,
        &[
            Point::PreFilter,
            Point::Filter,
            Point::Reserve,
            Point::PreBind,
        ],
        |tools| {
            let (cache, volumes) = (&tools.views.cache, &tools.views.volumes);
            Arc::new(volume_binding::VolumeBinding::new(
                tools.client.clone(),
                Arc::clone(cache),
                Arc::clone(volumes),
                tools.args.volume_binding_timeout,
            ))
        },
    ),
    row("VolumeZone", 0, FILTER, |tools| {
        let volumes = Arc::clone(&tools.views.volumes);
        Arc::new(volume_zone::VolumeZone::new(volumes))
    }),
    row("PodTopologySpread", 2, FILTER_AND_SCORE, |tools| {
        let owners = tools.views.owners.clone();
        Arc::new(match &tools.args.spread {
            None => pod_topology_spread::PodTopologySpread::new(owners),
            Some(defaults) => {
                pod_topology_spread::PodTopologySpread::with_defaults(owners, defaults)
            }
        })
    }),
    row("InterPodAffinity", 2, FILTER_AND_SCORE, |tools| {
        Arc::new(inter_pod_affinity::InterPodAffinity::new(
            tools.views.namespaces.clone(),
            tools.args.inter_pod_affinity,
        ))
    }),
    row(
        "DynamicResources",
        2,
        &[
            Point::PreEnqueue,
            Point::PreFilter,
            Point::Filter,
            Point::PostFilter,
            Point::Score,
            Point::Reserve,
            Point::PreBind,
        ],
        |tools| {
            Arc::new(dynamic_resources::DynamicResources::new(
                tools.client.clone(),
                tools.views,
                Clock::system(),
                tools.args.devices,
            ))
        },
    ),
    row("DefaultPreemption", 0, &[Point::PostFilter], |tools| {
        let args = tools.args.preemption;
        Arc::new(default_preemption::DefaultPreemption::new(args))
    }),
    row(
        "NodeResourcesBalancedAllocation",
        1,
        &[Point::PreScore, Point::Score],
        |tools| {
            let (resources, offers) = (tools.args.balanced.clone(), offers(tools));
            Arc::new(node_resources_balanced_allocation::BalancedAllocation::new(
                resources, offers,
            ))
        },
    ),
    row("ImageLocality", 1, &[Point::Score], |_| {
        Arc::new(image_locality::ImageLocality)
    }),
    row("DefaultBinder", 0, &[Point::Bind], |tools| {
        Arc::new(default_binder::DefaultBinder::new(tools.client.clone()))
    }),
    row("NodeDeclaredFeatures", 0, FILTER, |_| {
        Arc::new(node_declared_features::NodeDeclaredFeatures)
    }),
];

fn offers(tools: Tools<'_>) -> dynamic_resources::Offers {
    dynamic_resources::Offers::new(Arc::clone(&tools.views.devices))
}

const fn row(
    name: &'static str,
    weight: i64,
    points: &'static [Point],
    make: fn(Tools<'_>) -> SharedPlugin,
) -> Row {
    Row {
        name,
        weight,
        points,
        make,
    }
}

pub fn by_name(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// What a profile is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub scheduler_name: String,
    /// See `Profile`.
    pub percentage_of_nodes: usize,
    /// The names of each point's plugins in their order. All are in the list above.
    pub by_point: [Vec<&'static str>; Point::COUNT],
    /// Of scores; 1 where there is none.
    pub weights: BTreeMap<&'static str, i64>,
    pub arguments: Arguments,
}

impl Plan {
    /// All plugins at all their points.
    pub fn new(scheduler_name: &str) -> Self {
        let mut by_point: [Vec<&'static str>; Point::COUNT] = Default::default();
        for row in &ROWS {
            for point in row.points {
                by_point[*point as usize].push(row.name);
            }
        }
        Self {
            scheduler_name: scheduler_name.to_owned(),
            percentage_of_nodes: 0,
            by_point,
            weights: ROWS.iter().map(|row| (row.name, row.weight)).collect(),
            arguments: Arguments::default(),
        }
    }

    pub fn build(&self, client: &Client, views: &Views) -> Profile {
        let tools = Tools {
            args: &self.arguments,
            client,
            views,
        };
        let is_used = |row: &&Row| {
            let mut points = self.by_point.iter();
            points.any(|names| names.contains(&row.name))
        };
        let used: Vec<&Row> = ROWS.iter().filter(is_used).collect();
        let weight = |row: &Row| self.weights.get(row.name).copied().unwrap_or(1);
        let plugins = used.iter().map(|row| ((row.make)(tools), weight(row)));
        let place = |name: &&'static str| used.iter().position(|row| row.name == *name);
        let by_point = self
            .by_point
            .each_ref()
            .map(|names| names.iter().filter_map(place).collect());
        let mut profile = Profile::with_points(&self.scheduler_name, plugins.collect(), by_point);
        profile.percentage_of_nodes = self.percentage_of_nodes;
        profile
    }
}
