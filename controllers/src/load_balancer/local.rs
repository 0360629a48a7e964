//! Which nodes a Service under `externalTrafficPolicy: Local` names: those with a ready endpoint of
//! it, as others answer nobody. Pure.
//!
//! A node that lost its last one stays for `LINGER`, so that a pod which is not ready for a moment
//! changes nothing, and what readiness does from one second to the next is at most two writes in that time. Where
//! no node has a ready endpoint, those stay that there were: nobody else would answer, and who
//! makes names of addresses is not told to take them away over a restart.

use super::backends::NodeNames;
use super::places::Place;
use coracle_client::ObjectKey;
use coracle_client::clock::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

pub const LINGER: Duration = Duration::from_secs(5);

/// Since when nodes that Services name have no ready endpoint of these.
#[derive(Debug, Default)]
pub struct Lost(BTreeMap<ObjectKey, BTreeMap<String, Instant>>);

/// The nodes to be named now.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Local {
    pub nodes: NodeNames,
    /// When one of them is to go, if nothing changes until then.
    pub until: Option<Instant>,
}

impl Lost {
    /// `named` are the addresses that the Service has in its status.
    pub fn local(
        &mut self,
        service: &ObjectKey,
        (places, named): (&[Place], &[IpAddr]),
        ready: &NodeNames,
        now: Instant,
    ) -> Local {
        let is_named = |place: &&Place| place.addresses.iter().any(|of| named.contains(of));
        let named = places.iter().filter(is_named).map(|place| &place.name);
        let without = named.filter(|name| !ready.contains(*name));
        let before = self.0.remove(service).unwrap_or_default();
        let since = |name: &String| before.get(name).copied().unwrap_or(now);
        let lost: BTreeMap<_, _> = without.map(|name| (name.clone(), since(name))).collect();
        let has_ready = places.iter().any(|place| ready.contains(&place.name));
        let mut local = Local::default();
        for (name, since) in &lost {
            let end = *since + LINGER;
            if !has_ready {
                local.nodes.insert(name.clone());
            } else if end > now {
                local.nodes.insert(name.clone());
                local.until = Some(local.until.map_or(end, |until| until.min(end)));
            }
        }
        local.nodes.extend(ready.iter().cloned());
        if !lost.is_empty() {
            self.0.insert(service.clone(), lost);
        }
        local
    }

    /// What is kept of other Services goes.
    pub fn retain(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|service, _| is_kept(service));
    }
}

#[cfg(test)]
mod tests;
