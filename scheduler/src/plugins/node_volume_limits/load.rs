//! What is attached to each node, of the drivers that the pod's volumes need.

use super::driven;
use crate::node_info::NodeInfo;
use crate::pod_info::{Driven, of_volume};
use crate::volumes::Volumes;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Of one node that has a limit.
#[derive(Clone, Debug)]
struct Load {
    limits: Vec<(Arc<str>, i64)>,
    /// How many pods there use each volume.
    used: HashMap<Driven, usize>,
    /// Attached, whoever uses them.
    attached: HashSet<Driven>,
}

impl Load {
    fn has(&self, volume: &Driven) -> bool {
        self.used.contains_key(volume) || self.attached.contains(volume)
    }

    fn count(&self, driver: &str) -> usize {
        let used = self.used.keys().filter(|one| *one.driver == *driver);
        let attached = self.attached.iter().filter(|one| *one.driver == *driver);
        let unused = attached.filter(|one| !self.used.contains_key(*one));
        used.count() + unused.count()
    }

    fn is_too_much_with(&self, new: &[Driven]) -> bool {
        self.limits.iter().any(|(driver, limit)| {
            let added = new.iter().filter(|one| one.driver == *driver);
            let added = added.filter(|one| !self.has(one)).count();
            let total = i64::try_from(self.count(driver) + added).unwrap_or(i64::MAX);
            added > 0 && total > *limit
        })
    }
}

#[derive(Clone, Debug)]
pub struct Loads {
    new: Arc<[Driven]>,
    /// Nodes that are not here take everything.
    nodes: HashMap<Arc<str>, Arc<Load>>,
}

impl Loads {
    pub fn new(new: Vec<Driven>, nodes: &[NodeInfo], known: &Volumes) -> Self {
        let is_needed = |driver: &str| new.iter().any(|one| *one.driver == *driver);
        let load = |node: &NodeInfo| {
            let limits = known.on_nodes.limits(&node.name).iter();
            let limits: Vec<_> = limits
                .filter(|(driver, _)| is_needed(driver))
                .cloned()
                .collect();
            if limits.is_empty() {
                return None;
            }
            let attached = known.on_nodes.attached(&node.name).filter_map(|one| {
                let mut volume = of_volume(known.volume(&one.volume)?)?;
                volume.driver = Arc::clone(&one.driver);
                Some(volume)
            });
            let mut load = Load {
                limits,
                used: HashMap::new(),
                attached: attached.collect(),
            };
            for volume in node.pods.iter().flat_map(|pod| driven::volumes(pod, known)) {
                *load.used.entry(volume).or_default() += 1;
            }
            Some((Arc::clone(&node.name), Arc::new(load)))
        };
        Self {
            nodes: nodes.iter().filter_map(load).collect(),
            new: new.into(),
        }
    }

    pub fn is_too_much(&self, node: &str) -> bool {
        let load = self.nodes.get(node);
        load.is_some_and(|load| load.is_too_much_with(&self.new))
    }

    /// A pod with these volumes came to the node or left it.
    pub fn update(&mut self, node: &str, volumes: Vec<Driven>, is_there: bool) {
        let Some(load) = self.nodes.get_mut(node) else {
            return;
        };
        let used = &mut Arc::make_mut(load).used;
        for volume in volumes {
            if is_there {
                *used.entry(volume).or_default() += 1;
            } else if let Some(count) = used.get_mut(&volume) {
                *count -= 1;
                if *count == 0 {
                    used.remove(&volume);
                }
            }
        }
    }
}
