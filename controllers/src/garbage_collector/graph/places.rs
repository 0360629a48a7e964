//! Settles who and where an owner is that was only heard of.
//!
//! Dependents may describe one uid differently: another kind, name or namespace. Each description
//! is tried until a watch shows the owner or none is left; those that were wrong count as absent.

use std::collections::BTreeSet;

use super::{Effect, Graph, Identity, Uid};

impl Graph {
    /// An owner that was only heard of is seen. Dependents that describe it otherwise are looked
    /// at: what they name is somebody else, or nobody.
    pub(super) fn confirm_present(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.get_mut(&identity.uid) else {
            return;
        };
        if !node.is_virtual {
            return;
        }
        node.is_virtual = false;
        if node.identity == *identity {
            return;
        }
        node.identity = identity.clone();
        let (_, differing) = self.partition(identity);
        for uid in differing {
            let Some(node) = self.nodes.get(&uid) else {
                continue;
            };
            let dependent = node.identity.clone();
            let named = node.owners.iter().find(|one| one.uid == identity.uid);
            let named = named.map(|owner| owner.identity(&dependent.namespace));
            let elsewhere = dependent.namespace != identity.namespace;
            if let (true, Some(owner)) = (!identity.namespace.is_empty() && elsewhere, named) {
                self.effects
                    .push_back(Effect::InvalidNamespace { dependent, owner });
            }
            self.attempt_delete(&uid);
        }
    }

    /// The server says that there is no such object. It may have been looked for in a wrong place.
    pub(in crate::garbage_collector) fn confirm_absent(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.get(&identity.uid) else {
            return;
        };
        let same = node.identity == *identity;
        let (matching, differing) = self.partition(identity);
        if (node.is_virtual && differing.is_empty()) || (!node.is_virtual && same) {
            return self.delete(&identity.uid);
        }
        let is_virtual = node.is_virtual;
        if !matching.is_empty() {
            self.absent.add(identity.clone());
        }
        for dependent in matching {
            self.attempt_delete(&dependent);
        }
        if !(is_virtual && same) {
            return;
        }
        if let Some(other) = self.alternative(&differing, identity) {
            if let Some(node) = self.nodes.get_mut(&identity.uid) {
                node.identity = other;
            }
            let later = Effect::AttemptDeleteLater(identity.uid.clone());
            self.effects.push_back(later);
        }
    }

    /// The dependents of an owner that describe it as it is, and those that do not. One with
    /// several references may be among both.
    fn partition(&self, owner: &Identity) -> (Vec<Uid>, Vec<Uid>) {
        let (mut matching, mut differing) = (Vec::new(), Vec::new());
        let Some(node) = self.nodes.get(&owner.uid) else {
            return (matching, differing);
        };
        for uid in &node.dependents {
            let Some(dependent) = self.nodes.get(uid) else {
                continue;
            };
            let namespace = &dependent.identity.namespace;
            let reachable = owner.namespace.is_empty() || owner.namespace == *namespace;
            let mut references = dependent.owners.iter().filter(|one| one.uid == owner.uid);
            if reachable && references.clone().any(|one| one.names(owner)) {
                matching.push(uid.clone());
            }
            if !reachable || references.any(|one| !one.names(owner)) {
                differing.push(uid.clone());
            }
        }
        (matching, differing)
    }

    /// Another place where the owner may be: the next in order after the one that was tried.
    fn alternative(&self, dependents: &[Uid], tried: &Identity) -> Option<Identity> {
        let mut all = BTreeSet::new();
        for dependent in dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            for owner in dependent.owners.iter().filter(|one| one.uid == tried.uid) {
                let mut named = owner.identity(&dependent.identity.namespace);
                if tried.namespace.is_empty() && named.kind == tried.kind {
                    named.namespace = "".into(); // The kind is known to have no namespace.
                }
                all.insert(named);
            }
        }
        all.remove(tried);
        let following = all.range(tried.clone()..).next().cloned();
        following.or_else(|| all.pop_first())
    }
}
