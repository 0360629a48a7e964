//! What the scheduler needs of a Node object. The rest of it is dropped as it comes, which is most:
//! conditions, addresses, what the machine is. Images are counted by the cache.
//!
//! Nodes are much alike: keys and values of labels, and what else many have, are kept once for all.
//! Facts are equal where nothing that a plugin looks at is different: most updates are heartbeats.

use crate::resources::Resources;
use crate::selector::{LabelSet, Labels};
use crate::sharing::Sharing;
use coracle_client::volumes::{LOCAL_PATH_DIRECTORY, annotation};
use k8s_openapi::api::core::v1::{Node, Taint};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    pub name: Arc<str>,
    /// Another where the node took the place of one of its name.
    pub uid: Box<str>,
    pub is_unschedulable: bool,
    /// Whether volumes of the class of local paths can be made there.
    pub has_local_path: bool,
    pub taints: Box<[Taint]>,
    pub allocatable: Resources,
    pub labels: NodeLabels,
    pub declared_features: Arc<[Arc<str>]>,
}

impl NodeFacts {
    /// Of a node of which no more is known.
    pub fn named(name: &Arc<str>) -> Self {
        Self {
            name: Arc::clone(name),
            ..Self::default()
        }
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.label(key)
    }
}

/// The keys, which many nodes have in common, and their values in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLabels {
    /// Sorted.
    keys: Arc<[Arc<str>]>,
    values: Box<[Arc<str>]>,
}

/// What is kept by values of labels. They are many and short, and every cycle goes through all.
pub type ByValue<T> = HashMap<Arc<str>, T, foldhash::fast::RandomState>;

/// Where a key was among those of the node that was looked at last; the next one mostly has the same.
#[derive(Clone, Debug, Default)]
pub struct KeyPlace {
    keys: Option<Arc<[Arc<str>]>>,
    place: Option<usize>,
}

impl NodeLabels {
    /// The value of a key, the same for each `known`.
    pub fn value(&self, key: &str, known: &mut KeyPlace) -> Option<&Arc<str>> {
        let is_known = known.keys.as_ref();
        if !is_known.is_some_and(|keys| Arc::ptr_eq(keys, &self.keys)) {
            let found = self.keys.binary_search_by(|one| (**one).cmp(key));
            known.place = found.ok();
            known.keys = Some(Arc::clone(&self.keys));
        }
        known.place.map(|place| &self.values[place])
    }
}

impl LabelSet for NodeLabels {
    fn label(&self, key: &str) -> Option<&str> {
        let found = self.keys.binary_search_by(|known| (**known).cmp(key));
        found.ok().map(|place| &*self.values[place])
    }
}

/// What nodes have in common.
#[derive(Debug, Default)]
pub struct Common {
    texts: Sharing<str>,
    lists: Sharing<[Arc<str>]>,
}

impl Common {
    pub fn facts(&mut self, name: Arc<str>, node: &Node) -> NodeFacts {
        let (meta, spec, status) = (&node.metadata, node.spec.as_ref(), node.status.as_ref());
        let features = status.and_then(|status| status.declared_features.as_deref());
        let directory = annotation(meta, LOCAL_PATH_DIRECTORY);
        let taints = spec.and_then(|spec| spec.taints.clone());
        NodeFacts {
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
            has_local_path: directory.is_some_and(|directory| directory.starts_with('/')),
            taints: taints.unwrap_or_default().into(),
            allocatable: self.allocatable(node),
            labels: self.labels(&name, meta.labels.as_ref()),
            declared_features: self.list(features.into_iter().flatten()),
            name,
        }
    }

    fn labels(&mut self, name: &Arc<str>, labels: Option<&Labels>) -> NodeLabels {
        let pairs = || labels.into_iter().flatten();
        // No other node has the name, and most have it among their labels.
        let mut shared = |value: &str| match value == &**name {
            true => Arc::clone(name),
            false => self.texts.share(value),
        };
        NodeLabels {
            values: pairs().map(|(_, value)| shared(value)).collect(),
            keys: self.list(pairs().map(|(key, _)| key)),
        }
    }

    fn list<'a>(&mut self, texts: impl Iterator<Item = &'a String>) -> Arc<[Arc<str>]> {
        let texts = texts.map(|text| self.texts.share(text.as_str()));
        let texts: Vec<Arc<str>> = texts.collect();
        self.lists.share(texts)
    }

    fn allocatable(&mut self, node: &Node) -> Resources {
        let status = node.status.as_ref();
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        let found = allocatable.map(Resources::from_quantities);
        let mut found = found.unwrap_or_default();
        found.scalars.shrink_to_fit();
        for (name, _) in &mut found.scalars {
            *name = self.texts.share(&**name);
        }
        found
    }
}

#[cfg(test)]
impl NodeFacts {
    /// Of one node alone.
    pub fn of(node: &Node) -> Arc<Self> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        Arc::new(Common::default().facts(name.into(), node))
    }
}

#[cfg(test)]
mod tests;
