//! What the claims of a pod need, worked out once a cycle, and what was found for them. Pure.

use super::allocator::{AllocateError, Stock, Tools, allocate};
use super::claims;
use super::expressions::{Compiled, Expressions};
use super::extended::{Extended, Special};
use crate::devices::{Devices, allocation};
use crate::framework::{Reason, Release, Verdict};
use crate::node_info::NodeInfo;
use crate::plugins::node_selector::any_term_matches;
use crate::pod_info::PodInfo;
use coracle_client::key_of;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceClass, DeviceRequest, DeviceSelector, ResourceClaim,
};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Upstream's bound of `firstAvailable`: the first alternative is worth so much.
const ALTERNATIVES_MAX: usize = 8;

#[derive(Debug)]
pub struct Task {
    pub pod_uid: String,
    /// In the order of the pod's spec.
    pub claims: Vec<Arc<ResourceClaim>>,
    /// Those of them that have nothing yet.
    unallocated: Vec<Arc<ResourceClaim>>,
    /// What else it asks for of which nodes may have devices.
    pub extended: Option<Extended>,
    stock: Stock,
    compiled: Compiled,
    found: Mutex<Found>,
}

/// What the filter found.
#[derive(Debug, Default)]
struct Found {
    by_node: HashMap<Arc<str>, OnNode>,
    /// Places of claims whose devices are out of reach of a node.
    unavailable: BTreeSet<usize>,
}

/// What the claims get on one node.
#[derive(Debug)]
struct OnNode {
    /// Of those without anything, the special one last.
    results: Vec<AllocationResult>,
    special: Option<Special>,
}

/// What the claims of a pod have and get.
#[derive(Debug)]
pub struct Share {
    /// Each with what is new to it.
    pub claims: Vec<(Arc<ResourceClaim>, Option<AllocationResult>)>,
    /// The claim that is to be made for extended resources.
    pub special: Option<(Special, AllocationResult)>,
}

impl Task {
    /// `None` for a pod whose claims are none; in upstream's words why no node will do.
    pub fn of(
        pod: &PodInfo,
        devices: &Devices,
        expressions: &Expressions,
        uid: impl Fn() -> String,
    ) -> Result<Option<Self>, String> {
        let claims = claims::of_pod(pod, devices)?;
        let extended = Extended::of(pod, devices, uid);
        if claims.is_empty() && extended.is_none() {
            return Ok(None);
        }
        let mut unallocated = Vec::new();
        let mut classes = HashMap::new();
        for claim in &claims {
            if allocation(claim).is_some() {
                continue;
            }
            if devices.is_under_way(claims::uid(claim)) {
                let key = key_of(&**claim);
                return Err(format!(
                    "resource claim {key} is in the process of being allocated"
                ));
            }
            check_classes(claim, devices, &mut classes)?;
            unallocated.push(Arc::clone(claim));
        }
        for class in extended.iter().flat_map(Extended::classes) {
            let name = class.metadata.name.clone().unwrap_or_default();
            classes.insert(name, Arc::clone(class));
        }
        let mut task = Self {
            pod_uid: pod.uid.clone(),
            claims,
            unallocated,
            extended,
            stock: Stock::default(),
            compiled: Compiled::new(),
            found: Mutex::default(),
        };
        if !classes.is_empty() || !task.unallocated.is_empty() {
            let slices = devices.slices().cloned().collect();
            task.compiled = expressions.compile(selectors(&task.unallocated, &classes));
            task.stock = Stock::new(slices, classes, devices.allocations());
        }
        Ok(Some(task))
    }

    /// `is_usable` says of an allocated claim whether its devices still can be made ready.
    pub fn decide(
        &self,
        node: &NodeInfo,
        tools: Tools<'_>,
        is_usable: impl Fn(&ResourceClaim) -> bool,
    ) -> Verdict {
        let special = match self.extended.as_ref().map(|it| it.on_node(node)) {
            None => None,
            Some(Ok(special)) => special,
            Some(Err(text)) => return Verdict::Unresolvable(Reason::Text(text)),
        };
        let claims = self.claims.iter().enumerate();
        let out_of_reach = claims.filter(|(_, claim)| {
            allocation(claim).is_some_and(|it| !reaches(it, node) || !is_usable(claim))
        });
        let out_of_reach: Vec<usize> = out_of_reach.map(|(place, _)| place).collect();
        let mut allocated = None;
        let mut claims = self.unallocated.clone();
        claims.extend(special.iter().map(|special| Arc::clone(&special.claim)));
        if !claims.is_empty() {
            match allocate(&self.stock, &self.compiled, &claims, node, tools) {
                Ok(results) => allocated = Some(results),
                Err(error) => return refused(&error, node),
            }
        }
        let mut found = self.found.lock();
        if !out_of_reach.is_empty() {
            found.unavailable.extend(out_of_reach);
            let text = "resourceclaim not available on the node";
            return Verdict::Unresolvable(Reason::Text(text));
        }
        if let Some(results) = allocated {
            let on_node = OnNode { results, special };
            found.by_node.insert(Arc::clone(&node.name), on_node);
        }
        Verdict::Fit
    }

    /// What the claims get on a node.
    pub fn found(&self, node: &str) -> Option<Share> {
        let found = self.found.lock();
        let on_node = found.by_node.get(node);
        if on_node.is_none() && !self.unallocated.is_empty() {
            return None;
        }
        let mut results = on_node
            .into_iter()
            .flat_map(|it| it.results.iter().cloned());
        let claims = self.claims.iter().map(|claim| {
            let has = allocation(claim).is_some();
            let gets = if has { None } else { results.next() };
            (Arc::clone(claim), gets)
        });
        let claims = claims.collect();
        let special = on_node
            .and_then(|it| it.special.clone())
            .zip(results.next());
        Some(Share { claims, special })
    }

    /// The sooner the alternatives of requests come that the node meets, the better.
    pub fn score(&self, node: &str) -> i64 {
        if !self.found.lock().by_node.contains_key(node) {
            return 0;
        }
        let Some(found) = self.found(node) else {
            return 0;
        };
        let scores = found.claims.iter().map(|(claim, gets)| {
            let has = gets.as_ref().or_else(|| allocation(claim));
            has.map_or(0, |has| worth(claim, has))
        });
        scores.sum()
    }

    /// What has to be done with a claim for the pod to fit, if that can help: one that another
    /// allocation may make usable and that nobody else holds, or one of an attempt that failed.
    pub fn to_release(&self, pod: &PodInfo) -> Option<Release> {
        let found = self.found.lock();
        let mut claims = found.unavailable.iter().map(|place| &self.claims[*place]);
        let is_held_by_others =
            |one: &ResourceClaim| claims::reserved_for(one).iter().any(|by| by.uid != pod.uid);
        if let Some(claim) = claims.find(|claim| !is_held_by_others(claim)) {
            return Some(Release::Devices(Arc::clone(claim)));
        }
        match &self.extended {
            Some(Extended::Stale(claim)) => Some(Release::Claim(Arc::clone(claim))),
            _ => None,
        }
    }
}

/// What is wrong with a claim or a class no other node makes right, and the next search may be
/// faster: both end the cycle.
fn refused(error: &AllocateError, node: &NodeInfo) -> Verdict {
    let told = |text: String| Reason::Told(text.into());
    match error {
        AllocateError::NotEnough | AllocateError::InvalidPools => {
            Verdict::Unresolvable(told(error.to_string()))
        }
        AllocateError::Late => Verdict::Failed(told(format!("node {}: {error}", node.name))),
        AllocateError::Wrong(why) => Verdict::Failed(told(why.clone())),
    }
}

fn reaches(allocation: &AllocationResult, node: &NodeInfo) -> bool {
    let selector = allocation.node_selector.as_ref();
    selector.is_none_or(|selector| any_term_matches(&selector.node_selector_terms, &node.facts))
}

fn requests(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequest> {
    let devices = claim.spec.devices.iter();
    devices.flat_map(|devices| devices.requests.iter().flatten())
}

/// Collects the classes that requests name; all must be there.
fn check_classes(
    claim: &ResourceClaim,
    devices: &Devices,
    classes: &mut HashMap<String, Arc<DeviceClass>>,
) -> Result<(), String> {
    let mut check = |name: &str, request: &str| {
        let Some(class) = devices.class(name) else {
            return Err(format!(
                "request {request}: device class {name} does not exist"
            ));
        };
        classes.insert(name.to_owned(), Arc::clone(class));
        Ok(())
    };
    for request in requests(claim) {
        let alternatives = request.first_available.as_deref().unwrap_or_default();
        if let Some(exactly) = &request.exactly {
            check(&exactly.device_class_name, &request.name)?;
        } else if alternatives.is_empty() {
            return Err(format!(
                "resource claim {}, request {}: unknown request type",
                key_of(claim),
                request.name
            ));
        }
        for one in alternatives {
            check(
                &one.device_class_name,
                &format!("{}/{}", request.name, one.name),
            )?;
        }
    }
    Ok(())
}

fn selectors<'a>(
    claims: &'a [Arc<ResourceClaim>],
    classes: &'a HashMap<String, Arc<DeviceClass>>,
) -> impl Iterator<Item = &'a DeviceSelector> {
    let requests = claims.iter().flat_map(|claim| requests(claim));
    let own = requests.flat_map(|request| {
        let exact = request.exactly.iter().flat_map(|one| &one.selectors);
        let alternatives = request.first_available.iter().flatten();
        exact.chain(alternatives.flat_map(|one| &one.selectors))
    });
    let of_classes = classes.values().flat_map(|class| &class.spec.selectors);
    own.chain(of_classes).flatten()
}

fn worth(claim: &ResourceClaim, allocation: &AllocationResult) -> i64 {
    let results = allocation.devices.iter().flat_map(|it| &it.results);
    let names: BTreeSet<&str> = results.flatten().map(|one| &*one.request).collect();
    let mut worth = 0;
    for request in requests(claim).filter(|request| request.exactly.is_none()) {
        let alternatives = request.first_available.iter().flatten();
        for (place, one) in alternatives.enumerate() {
            if names.contains(&*format!("{}/{}", request.name, one.name)) {
                worth += ALTERNATIVES_MAX.saturating_sub(place);
            }
        }
    }
    i64::try_from(worth).unwrap_or(i64::MAX)
}
