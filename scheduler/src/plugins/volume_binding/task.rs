//! What the claims of a pod need of a node. Pure.

use crate::framework::Reason;
use crate::node_facts::NodeFacts;
use crate::pod_info::PodInfo;
use crate::volumes::Volumes;
use coracle_api::quantity::Quantity;
use coracle_api::selector::LabelSelector;
use coracle_client::volumes::{self, LOCAL_PATH, NO_PROVISIONER, Wanted};
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::{CSIStorageCapacity, StorageClass};
use std::sync::Arc;

const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";
const NOT_REACHED: &str = "node(s) didn't match PersistentVolume's node affinity";
const NO_MATCH: &str = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE: &str = "node(s) did not have enough free storage";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// The same for all nodes, found out once a cycle.
#[derive(Debug)]
pub struct Task {
    /// In the order of the claims; `None` for a volume that is not there.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Those that are made somewhere already, then the smallest first, so that it does not take what
    /// only a larger one has use for.
    open: Vec<Open>,
}

/// A claim that waits for a node.
#[derive(Debug)]
struct Open {
    claim: Arc<PersistentVolumeClaim>,
    class: Arc<StorageClass>,
    /// Where its volume is made already.
    node: Option<String>,
    /// It gets none but this one, or one that is made where this is out of reach.
    held: Option<Arc<PersistentVolume>>,
    /// Those that fit, the best first.
    candidates: Vec<Arc<PersistentVolume>>,
    /// What its driver has left, where it says so.
    capacities: Option<Vec<Room>>,
}

/// How large a volume may be, and from where it can be reached.
#[derive(Debug)]
struct Room {
    size_max: i64,
    nodes: LabelSelector,
}

/// What the open claims get on a node.
#[derive(Debug, Default)]
pub struct Decision {
    pub take: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    pub provision: Vec<Arc<PersistentVolumeClaim>>,
}

pub fn claim_keys(pod: &PodInfo) -> Vec<ObjectKey> {
    let names = pod.claims.iter();
    let keys = names.map(|claim| ObjectKey::new(&pod.key.namespace, &claim.name));
    keys.collect()
}

fn say(text: String) -> Reason {
    Reason::Told(text.into())
}

impl Task {
    /// Or why no node will do.
    pub fn of(pod: &PodInfo, known: &Volumes) -> Result<Self, Reason> {
        let mut claims = Vec::new();
        for claim in &pod.claims {
            claims.push(find(pod, &claim.name, claim.is_ephemeral, known)?);
        }
        let mut task = Self {
            bound: Vec::new(),
            open: Vec::new(),
        };
        for claim in claims {
            let name = volumes::volume_name(claim);
            if volumes::is_fully_bound(claim) {
                task.bound.push(known.volume(name).cloned());
                continue;
            }
            let class = known.class(volumes::class_of_claim(claim));
            match class.filter(|class| volumes::binds_late(class) && name.is_empty()) {
                Some(class) => task.open.push(Open::new(claim, class, known)),
                None => return Err(Reason::Text(UNBOUND)),
            }
        }
        let is_open = |open: &Open| open.node.is_none();
        (task.open).sort_by_key(|open| is_open(open).then(|| volumes::request(&open.claim)));
        Ok(task)
    }

    /// Or why the node will not do: of what is bound and of what is open, one reason each.
    pub fn decide(&self, node: &NodeFacts) -> Result<Decision, Reason> {
        let is_reached = |volume: &PersistentVolume| is_reachable(volume, node);
        let conflict = self.bound.iter().find_map(|volume| match volume {
            None => Some(NO_VOLUME),
            Some(volume) => (!is_reached(volume)).then_some(NOT_REACHED),
        });
        match (conflict, self.decide_open(node)) {
            (None, Ok(decision)) => Ok(decision),
            (Some(why), Ok(_)) | (None, Err(why)) => Err(Reason::Text(why)),
            (Some(bound), Err(open)) => Err(Reason::Texts(both(bound, open))),
        }
    }

    fn decide_open(&self, node: &NodeFacts) -> Result<Decision, &'static str> {
        let is_reached = |volume: &PersistentVolume| is_reachable(volume, node);
        let mut made = self.open.iter().filter_map(|open| open.node.as_deref());
        if made.any(|made| made != &*node.name) {
            return Err(NO_MATCH);
        }
        let mut decision = Decision::default();
        for open in &self.open {
            let is_free = |volume: &&Arc<PersistentVolume>| {
                let mut taken = decision.take.iter();
                is_reached(volume) && !taken.any(|(other, _)| Arc::ptr_eq(other, volume))
            };
            let found = match (&open.node, &open.held) {
                (Some(_), _) => None,
                (None, Some(held)) => Some(held).filter(|held| is_reached(held)),
                (None, None) => open.candidates.iter().find(is_free),
            };
            match found {
                Some(volume) => {
                    let pair = (Arc::clone(volume), Arc::clone(&open.claim));
                    decision.take.push(pair);
                }
                None => {
                    open.may_be_provisioned(node)?;
                    decision.provision.push(Arc::clone(&open.claim));
                }
            }
        }
        Ok(decision)
    }
}

fn is_reachable(volume: &PersistentVolume, node: &NodeFacts) -> bool {
    volumes::is_reachable(volume, |key| node.label(key), &node.name)
}

fn both(bound: &'static str, open: &'static str) -> &'static [&'static str] {
    match (bound, open) {
        (NO_VOLUME, NO_SPACE) => &[NO_VOLUME, NO_SPACE],
        (NO_VOLUME, _) => &[NO_VOLUME, NO_MATCH],
        (_, NO_SPACE) => &[NOT_REACHED, NO_SPACE],
        _ => &[NOT_REACHED, NO_MATCH],
    }
}

fn find<'a>(
    pod: &PodInfo,
    name: &str,
    is_ephemeral: bool,
    known: &'a Volumes,
) -> Result<&'a Arc<PersistentVolumeClaim>, Reason> {
    let key = ObjectKey::new(&pod.key.namespace, name);
    let Some(claim) = known.claim(&key) else {
        return Err(say(match is_ephemeral {
            true => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim \
                 {name:?}"
            ),
            false => format!("persistentvolumeclaim {name:?} not found"),
        }));
    };
    let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
    if phase == Some("Lost") {
        let volume = volumes::volume_name(claim);
        return Err(say(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        )));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(say(format!(
            "persistentvolumeclaim {name:?} is being deleted"
        )));
    }
    let owners = claim.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    if is_ephemeral && !controllers.any(|owner| owner.uid == pod.uid) {
        return Err(say(format!(
            "PVC {key} was not created for pod {} (pod is not owner)",
            pod.key
        )));
    }
    Ok(claim)
}

impl Open {
    fn new(claim: &Arc<PersistentVolumeClaim>, class: &Arc<StorageClass>, known: &Volumes) -> Self {
        let key = key_of(claim.as_ref());
        let wanted = Wanted::by(claim);
        let class_name = class.metadata.name.as_deref().unwrap_or_default();
        let free: Vec<_> = known.free_for(&key, class_name).cloned().collect();
        let held = wanted.held(&free);
        let held = held.and_then(|held| known.volume(held.metadata.name.as_deref()?).cloned());
        let mut candidates = free;
        candidates.retain(|volume| wanted.is_met_by(volume));
        candidates.sort_by(|a, b| Wanted::order(a, b));
        let capacities = known.capacities_of(class);
        Self {
            claim: Arc::clone(claim),
            class: Arc::clone(class),
            node: known.node_of(&key).map(str::to_owned),
            held,
            candidates,
            capacities: capacities.map(|all| all.iter().filter_map(|one| Room::of(one)).collect()),
        }
    }

    fn may_be_provisioned(&self, node: &NodeFacts) -> Result<(), &'static str> {
        let is_possible = match self.class.provisioner.as_str() {
            "" | NO_PROVISIONER => false,
            LOCAL_PATH => node.has_local_path,
            _ => true,
        };
        let terms = self.class.allowed_topologies.as_deref();
        if !is_possible || !is_allowed(terms.unwrap_or_default(), node) {
            return Err(NO_MATCH);
        }
        let size = volumes::request(&self.claim).value();
        let has_room =
            |room: &Room| room.size_max >= size && room.nodes.matches_with(|key| node.label(key));
        match &self.capacities {
            Some(rooms) if !rooms.iter().any(has_room) => Err(NO_SPACE),
            _ => Ok(()),
        }
    }
}

impl Room {
    /// `None` for what no node reaches or nobody knows the size of.
    fn of(capacity: &CSIStorageCapacity) -> Option<Self> {
        let largest = capacity.maximum_volume_size.as_ref();
        let size = largest.or(capacity.capacity.as_ref())?;
        let nodes = serde_json::to_value(capacity.node_topology.as_ref()?).ok()?;
        Some(Self {
            size_max: Quantity::parse(&size.0).ok()?.value(),
            nodes: LabelSelector::from_json(&nodes).ok()?,
        })
    }
}

/// Terms are alternatives, none allows all; each label of a term must have one of its values.
fn is_allowed(terms: &[TopologySelectorTerm], node: &NodeFacts) -> bool {
    let holds = |term: &TopologySelectorTerm| {
        let mut all = term.match_label_expressions.iter().flatten();
        all.all(|one| {
            let value = node.label(&one.key);
            value.is_some_and(|value| one.values.iter().any(|allowed| allowed == value))
        })
    };
    terms.is_empty() || terms.iter().any(holds)
}
