//! Who owns what: one node an object, by uid. Pure.
//!
//! An owner that somebody names and nobody has seen is a virtual node: where it is to be found is
//! what its dependents say, until a watch shows it or the server says that it is not there.
//! Every change tells what must be looked at because of it; looking is somebody else's.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::absent::AbsentOwners;

mod identity;
mod places; // Where a virtual owner is, when dependents disagree.

pub(super) use identity::{Identity, Kind, Uid};

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// A reference to an owner, without what the graph does not need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: Uid,
    pub(super) kind: Arc<Kind>,
    pub(super) name: Box<str>,
    pub(super) blocks: bool,
}

/// What the graph knows of one object.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) identity: Identity,
    pub(super) owners: Box<[Owner]>,
    pub(super) dependents: BTreeSet<Uid>,
    /// Named by a dependent, not seen by a watch.
    pub(super) is_virtual: bool,
    pub(super) deleting: bool,
    /// Deleted, and waits for its dependents to be deleted.
    pub(super) deleting_dependents: bool,
    /// Deleted, and waits for its dependents to be released.
    pub(super) orphaning: bool,
}

/// What a change asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    /// Look whether the object must be deleted.
    AttemptDelete(Uid),
    /// The same, but not at once: it would come again and again.
    AttemptDeleteLater(Uid),
    /// Release the dependents of the object.
    AttemptOrphan(Uid),
    /// Tell that an object names an owner of another namespace.
    InvalidNamespace {
        dependent: Identity,
        owner: Identity,
    },
}

/// An object as a watch shows it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) identity: Identity,
    pub(super) owners: Box<[Owner]>,
    pub(super) deleting: bool,
    pub(super) foreground: bool,
    pub(super) orphan: bool,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// Kinds are few and named by every node.
    kinds: HashSet<Arc<Kind>>,
    absent: AbsentOwners,
    effects: VecDeque<Effect>,
}

impl Graph {
    pub(super) fn get(&self, uid: &Uid) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub(super) fn absent(&mut self) -> &mut AbsentOwners {
        &mut self.absent
    }

    pub(super) fn kind(&mut self, api_version: &str, kind: &str) -> Arc<Kind> {
        let wanted = Kind::new(api_version, kind);
        if let Some(known) = self.kinds.get(&wanted) {
            return known.clone();
        }
        let new = Arc::new(wanted);
        self.kinds.insert(new.clone());
        new
    }

    /// Keeps of an object's metadata what the graph needs.
    pub(super) fn seen(&mut self, kind: &Arc<Kind>, meta: &ObjectMeta) -> Option<Seen> {
        let owners = meta.owner_references.as_deref().unwrap_or_default();
        let owners = owners.iter().map(|owner| self.owner(owner)).collect();
        let has = |wanted: &str| {
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            finalizers.iter().any(|one| one == wanted)
        };
        let deleting = meta.deletion_timestamp.is_some();
        Some(Seen {
            identity: Identity::of(kind, meta)?,
            owners,
            deleting,
            foreground: deleting && has(FOREGROUND),
            orphan: deleting && has(ORPHAN),
        })
    }

    pub(super) fn owner(&mut self, owner: &OwnerReference) -> Owner {
        Owner {
            uid: Uid::from(owner.uid.as_str()),
            kind: self.kind(&owner.api_version, &owner.kind),
            name: owner.name.as_str().into(),
            blocks: owner.block_owner_deletion == Some(true),
        }
    }

    /// What the changes since the last call ask for.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        self.effects.drain(..).collect()
    }

    /// A watch shows the object, new or changed.
    pub(super) fn apply(&mut self, seen: Seen) {
        let uid = seen.identity.uid.clone();
        self.confirm_present(&seen.identity);
        let Some(node) = self.nodes.get_mut(&uid) else {
            return self.insert(seen);
        };
        let orphaning_starts = seen.orphan && !node.orphaning;
        let waiting_starts = seen.foreground && !node.deleting_dependents;
        node.deleting = seen.deleting;
        node.deleting_dependents = seen.foreground;
        node.orphaning = seen.orphan;
        if node.owners != seen.owners {
            let old = std::mem::replace(&mut node.owners, seen.owners);
            self.owners_changed(&uid, &old);
        }
        self.transition(&uid, orphaning_starts, waiting_starts);
    }

    fn insert(&mut self, seen: Seen) {
        let uid = seen.identity.uid.clone();
        let owners = seen.owners.clone();
        let node = Node {
            identity: seen.identity,
            owners: seen.owners,
            dependents: BTreeSet::new(),
            is_virtual: false,
            deleting: seen.deleting,
            deleting_dependents: seen.foreground,
            orphaning: seen.orphan,
        };
        self.nodes.insert(uid.clone(), node);
        self.add_to_owners(&uid, &owners);
        self.transition(&uid, seen.orphan, seen.foreground);
    }

    fn owners_changed(&mut self, uid: &Uid, old: &[Owner]) {
        let Some(new) = self.nodes.get(uid).map(|node| node.owners.clone()) else {
            return;
        };
        let find = |all: &[Owner], uid: &Uid| all.iter().find(|one| one.uid == *uid).cloned();
        for owner in old.iter().filter(|owner| owner.blocks) {
            let still_blocks = find(&new, &owner.uid).is_some_and(|owner| owner.blocks);
            if !still_blocks && self.nodes.contains_key(&owner.uid) {
                self.attempt_delete(&owner.uid);
            }
        }
        let added = new.iter().filter(|one| find(old, &one.uid).is_none());
        let added: Vec<_> = added.cloned().collect();
        self.add_to_owners(uid, &added);
        for owner in old.iter().filter(|one| find(&new, &one.uid).is_none()) {
            self.remove_dependent(&owner.uid, uid);
        }
    }

    fn transition(&mut self, uid: &Uid, orphaning_starts: bool, waiting_starts: bool) {
        if orphaning_starts {
            self.effects.push_back(Effect::AttemptOrphan(uid.clone()));
        } else if waiting_starts {
            self.attempt_dependents(uid);
            self.attempt_delete(uid);
        }
    }

    fn attempt_delete(&mut self, uid: &Uid) {
        self.effects.push_back(Effect::AttemptDelete(uid.clone()));
    }

    fn attempt_dependents(&mut self, uid: &Uid) {
        let dependents = self.nodes.get(uid).map(|node| &node.dependents);
        for dependent in dependents.into_iter().flatten() {
            self.effects
                .push_back(Effect::AttemptDelete(dependent.clone()));
        }
    }

    /// Notes the object with each owner; unknown owners become virtual nodes.
    fn add_to_owners(&mut self, uid: &Uid, owners: &[Owner]) {
        let Some(dependent) = self.nodes.get(uid).map(|node| node.identity.clone()) else {
            return;
        };
        let mut doubtful = false;
        for owner in owners {
            let named = owner.identity(&dependent.namespace);
            let Some(node) = self.nodes.get_mut(&owner.uid) else {
                self.nodes
                    .insert(owner.uid.clone(), Node::virtual_owner(named, uid));
                self.attempt_delete(&owner.uid);
                continue;
            };
            node.dependents.insert(uid.clone());
            let owner_namespaced = !node.identity.namespace.is_empty();
            let elsewhere = node.identity.namespace != dependent.namespace;
            if owner_namespaced && elsewhere && !node.is_virtual && !doubtful {
                self.effects.push_back(Effect::InvalidNamespace {
                    dependent: dependent.clone(),
                    owner: named.clone(),
                });
            }
            // A virtual node that a cluster-wide dependent made may be of a kind with namespaces.
            doubtful |= !owner.names(&node.identity)
                || (elsewhere && (owner_namespaced || node.is_virtual));
        }
        if doubtful {
            self.attempt_delete(uid);
        }
    }

    /// A watch shows that the object is gone.
    pub(super) fn delete(&mut self, uid: &Uid) {
        let Some(node) = self.remove(uid) else { return };
        if !node.dependents.is_empty() {
            self.absent.add(node.identity);
        }
    }

    /// Nobody serves the kind any more: no word will come of its objects. That they are gone is not
    /// known, so that what they own stays; but nobody waits for them.
    pub(super) fn forget(&mut self, kind: &Kind) {
        let known = self.nodes.iter();
        let known = known.filter(|(_, node)| !node.is_virtual && *node.identity.kind == *kind);
        let known: Vec<_> = known.map(|(uid, _)| uid.clone()).collect();
        for uid in known {
            self.remove(&uid);
        }
    }

    fn remove(&mut self, uid: &Uid) -> Option<Node> {
        let node = self.nodes.remove(uid)?;
        for dependent in &node.dependents {
            self.attempt_delete(dependent);
        }
        for owner in &node.owners {
            self.remove_dependent(&owner.uid, uid);
            let waits = self.nodes.get(&owner.uid);
            if waits.is_some_and(|owner| owner.deleting_dependents) {
                self.attempt_delete(&owner.uid);
            }
        }
        Some(node)
    }

    /// A list of a kind is complete: what it does not show is gone.
    pub(super) fn retain_listed(&mut self, kind: &Arc<Kind>, listed: &HashSet<Uid>) {
        let gone = self.nodes.iter().filter(|(uid, node)| {
            !node.is_virtual && node.identity.kind == *kind && !listed.contains(*uid)
        });
        let gone: Vec<_> = gone.map(|(uid, _)| uid.clone()).collect();
        for uid in gone {
            self.delete(&uid);
        }
    }

    fn remove_dependent(&mut self, owner: &Uid, dependent: &Uid) {
        if let Some(owner) = self.nodes.get_mut(owner) {
            owner.dependents.remove(dependent);
        }
    }

    /// The dependents that keep an owner from being deleted in the foreground.
    pub(super) fn blocking(&self, uid: &Uid) -> Vec<&Node> {
        let dependents = self.nodes.get(uid).into_iter();
        let dependents = dependents.flat_map(|node| &node.dependents);
        let dependents = dependents.filter_map(|dependent| self.nodes.get(dependent));
        dependents
            .filter(|node| node.owners.iter().any(|one| one.uid == *uid && one.blocks))
            .collect()
    }

    pub(super) fn dependents(&self, uid: &Uid) -> Vec<&Node> {
        let dependents = self.nodes.get(uid).into_iter();
        let dependents = dependents.flat_map(|node| &node.dependents);
        dependents
            .filter_map(|dependent| self.nodes.get(dependent))
            .collect()
    }
}

impl Node {
    fn virtual_owner(identity: Identity, dependent: &Uid) -> Self {
        Self {
            identity,
            owners: Box::default(),
            dependents: BTreeSet::from([dependent.clone()]),
            is_virtual: true,
            deleting: false,
            deleting_dependents: false,
            orphaning: false,
        }
    }
}

impl Owner {
    /// Where the owner is to be found if it lives with its dependent.
    pub(super) fn identity(&self, namespace: &str) -> Identity {
        Identity {
            kind: self.kind.clone(),
            namespace: namespace.into(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    fn names(&self, identity: &Identity) -> bool {
        self.uid == identity.uid && self.kind == identity.kind && self.name == identity.name
    }
}

#[cfg(test)]
mod tests;
