//! What is known of the cluster and what the kernel has of it, and the changes from there. Pure.
//!
//! Invariants: the changes of each `flush`, taken in order, lead to what `whole` writes. Numbers of
//! chains and of groups are never given twice. Of an address that a pod of this node has, nothing
//! that others say about it counts.

mod written; // What the kernel has.

pub use written::{Chain, Changes, Entry, Line, Link, Who};

use super::labels::Labels;
use super::plan::{Content, Group, plan};
use super::record::{DIRECTIONS, Direction, Key, Namespaces, Pod, Policy};
use crate::network::view::{key, parts};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use written::{Member, Written};

/// A pod of this node, from before it has its link until it has none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Here {
    pub key: Key,
    /// As it was when it was made, or as the server told last: it may run on when the server knows
    /// no more of it.
    pub pod: Pod,
}

impl Here {
    /// Of another pod of this name nothing is taken over, and of none where it is: that is known
    /// here.
    fn hear(&mut self, told: &Pod) {
        if told.uid == self.pod.uid {
            self.pod.labels = told.labels.clone();
            self.pod.ports = told.ports.clone();
        }
    }
}

#[derive(Debug, Default)]
pub struct State {
    pub known: Known,
    here: BTreeMap<Link, Here>,
    /// Where this node answers names itself: for policies a pod as there is one elsewhere.
    names: Pod,
    written: Written,
    /// Pods of this node whose rules may be other ones now.
    links: BTreeSet<Link>,
    /// Whose groups may be other ones now.
    addresses: BTreeSet<IpAddr>,
}

/// What the server told.
#[derive(Debug, Default)]
pub struct Known {
    pub policies: BTreeMap<Key, Policy>,
    pub namespaces: BTreeMap<Box<str>, Labels>,
    pub pods: BTreeMap<Key, Pod>,
    /// Of pods.
    at: BTreeSet<(IpAddr, Key)>,
}

/// Where answers to names are found.
const NAMES: &str = "kube-system";

pub fn namespace(key: &str) -> &str {
    parts(key).0
}

fn in_namespace<'a, T>(
    all: &'a BTreeMap<Key, T>,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a T)> + use<'a, T> {
    let start = key(namespace, "");
    let from = all.range::<str, _>((Bound::Included(&*start), Bound::Unbounded));
    from.take_while(move |(key, _)| key.starts_with(&*start))
}

fn put<K: Ord, V>(all: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => _ = all.insert(key, value),
        None => _ = all.remove(&key),
    }
}

fn gone<'a>(all: impl Iterator<Item = &'a Key>, kept: &BTreeSet<Key>) -> Vec<Key> {
    let gone = all.filter(|key| !kept.contains(*key));
    gone.cloned().collect()
}

impl State {
    /// True when it is news.
    pub fn set_policy(&mut self, key: &Key, policy: Option<Policy>) -> bool {
        if self.known.policies.get(key) == policy.as_ref() {
            return false;
        }
        put(&mut self.known.policies, key.clone(), policy);
        let of = self.here.iter();
        let of = of.filter(|(_, here)| namespace(&here.key) == namespace(key));
        self.links.extend(of.map(|(link, _)| link.clone()));
        true
    }

    pub fn set_namespace(&mut self, name: &str, labels: Option<Labels>) -> bool {
        if self.known.namespaces.get(name) == labels.as_ref() {
            return false;
        }
        put(&mut self.known.namespaces, name.into(), labels);
        let pods = in_namespace(&self.known.pods, name).map(|(_, pod)| pod);
        let here = self.here.values();
        let here = here.filter(|here| namespace(&here.key) == name);
        let pods = pods.chain(here.map(|here| &here.pod));
        let names = (name == NAMES).then_some(&self.names);
        let pods = pods.chain(names);
        self.addresses
            .extend(pods.flat_map(|pod| pod.addresses.iter().copied()));
        true
    }

    pub fn set_pod(&mut self, key: &Key, pod: Option<Pod>) -> bool {
        let known = &mut self.known;
        let old = known.pods.get(key);
        if old == pod.as_ref() {
            return false;
        }
        for address in old.iter().flat_map(|pod| pod.addresses.iter()) {
            known.at.remove(&(*address, key.clone()));
            self.addresses.insert(*address);
        }
        for address in pod.iter().flat_map(|pod| pod.addresses.iter()) {
            known.at.insert((*address, key.clone()));
            self.addresses.insert(*address);
        }
        for (link, here) in &mut self.here {
            let Some(pod) = pod.as_ref().filter(|_| here.key == *key) else {
                continue;
            };
            here.hear(pod);
            self.links.insert(link.clone());
            self.addresses.extend(here.pod.addresses.iter().copied());
        }
        put(&mut known.pods, key.clone(), pod);
        true
    }

    pub fn set_here(&mut self, link: &Link, here: Option<Here>) {
        let here = here.map(|mut here| {
            if let Some(before) = self.here.get(link) {
                here.hear(&before.pod);
            }
            if let Some(told) = self.known.pods.get(&here.key) {
                here.hear(told);
            }
            here
        });
        let old = match here.clone() {
            Some(here) => self.here.insert(link.clone(), here),
            None => self.here.remove(link),
        };
        if old == here {
            return;
        }
        for here in old.iter().chain(&here) {
            self.addresses.extend(here.pod.addresses.iter().copied());
        }
        self.links.insert(link.clone());
    }

    pub fn set_names(&mut self, addresses: &[IpAddr]) {
        let ports = [("dns", "UDP"), ("dns-tcp", "TCP")].map(|(name, protocol)| {
            coracle_api::policy_feed::NamedPort {
                name: name.to_owned(),
                protocol: protocol.to_owned(),
                port: 53,
            }
        });
        let names = Pod {
            labels: Labels::of([("k8s-app", "kube-dns")]),
            addresses: addresses.into(),
            ports: super::decode::named_ports(&ports),
            ..Pod::default()
        };
        let old = std::mem::replace(&mut self.names, names);
        self.addresses.extend(old.addresses);
        self.addresses.extend(addresses);
    }

    /// Forgets what is in none of these.
    pub fn retain(
        &mut self,
        policies: &BTreeSet<Key>,
        namespaces: &BTreeSet<Box<str>>,
        pods: &BTreeSet<Key>,
    ) {
        let known = &self.known;
        let policies = gone(known.policies.keys(), policies);
        let pods = gone(known.pods.keys(), pods);
        let names = known.namespaces.keys();
        let names: Vec<_> = names
            .filter(|name| !namespaces.contains(*name))
            .cloned()
            .collect();
        for key in &policies {
            self.set_policy(key, None);
        }
        for key in &pods {
            self.set_pod(key, None);
        }
        for name in &names {
            self.set_namespace(name, None);
        }
    }

    /// What has changed since the last time.
    pub fn flush(&mut self) -> Changes {
        let mut changes = Changes::default();
        let links = std::mem::take(&mut self.links);
        for link in &links {
            let contents = self.contents(link);
            let here = self.here.get(link);
            let addresses = here.map_or(&[][..], |here| &*here.pod.addresses);
            self.written
                .set_link(link, contents, addresses, &mut changes);
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        if !links.is_empty() && self.written.settle(&mut changes) {
            addresses = self.all_addresses();
        }
        let here = self.by_address();
        let addresses = addresses.into_iter();
        let members: Vec<_> = addresses
            .map(|address| (address, self.members(address, &here)))
            .collect();
        for (address, members) in members {
            self.written.set_members(address, members, &mut changes);
        }
        changes
    }

    /// All of it, as if the kernel had nothing but the chains of these numbers, which something may
    /// still lead to: they are empty then, and deleted by the next `sweep`.
    pub fn whole(&mut self, there: impl IntoIterator<Item = u32>) -> Changes {
        self.flush();
        self.written.whole(there)
    }

    /// Chains that nothing led to when the last changes were taken.
    pub fn sweep(&mut self) -> Changes {
        self.written.sweep()
    }

    pub fn has_stale(&self) -> bool {
        self.written.has_stale()
    }

    fn contents(&self, link: &Link) -> [Option<Arc<Content>>; 2] {
        let Some(here) = self.here.get(link) else {
            return [None, None];
        };
        DIRECTIONS.map(|direction: Direction| {
            let policies = in_namespace(&self.known.policies, namespace(&here.key));
            plan(policies, &here.pod, direction).map(Arc::new)
        })
    }

    fn all_addresses(&self) -> BTreeSet<IpAddr> {
        let here = self.here.values();
        let here = here.flat_map(|here| here.pod.addresses.iter().copied());
        let told = self.known.at.iter().map(|(address, _)| *address);
        let names = self.names.addresses.iter().copied();
        let known = here.chain(told).chain(names);
        known.chain(self.written.addresses()).collect()
    }

    fn by_address(&self) -> BTreeMap<IpAddr, &Here> {
        let here = self.here.values();
        let each = here.flat_map(|here| here.pod.addresses.iter().map(move |one| (*one, here)));
        each.collect()
    }

    fn members(&self, address: IpAddr, here: &BTreeMap<IpAddr, &Here>) -> Box<[Member]> {
        let mut members = BTreeSet::new();
        if let Some(here) = here.get(&address) {
            self.add_members(namespace(&here.key), &here.pod, &mut members);
        } else {
            let start = (address, Key::from(""));
            let from = self.known.at.range(start..);
            for (_, key) in from.take_while(|(known, _)| *known == address) {
                self.add_members(namespace(key), &self.known.pods[key], &mut members);
            }
        }
        if self.names.addresses.contains(&address) {
            self.add_members(NAMES, &self.names, &mut members);
        }
        members.into_iter().collect()
    }

    fn add_members(&self, namespace: &str, pod: &Pod, members: &mut BTreeSet<Member>) {
        for (number, group) in self.written.groups() {
            if !self.is_in(namespace, pod, group) {
                continue;
            }
            match &group.port {
                None => _ = members.insert(Member::Any(number)),
                Some((protocol, name)) => {
                    let ports = pod.named(*protocol, name);
                    members.extend(ports.map(|port| Member::Port(number, *protocol, port)));
                }
            }
        }
    }

    fn is_in(&self, namespace: &str, pod: &Pod, group: &Group) -> bool {
        group.peers.iter().any(|peer| {
            let is_there = match &peer.namespaces {
                Namespaces::One(name) => **name == *namespace,
                Namespaces::Selected(selector) => {
                    let labels = self.known.namespaces.get(namespace);
                    labels.is_some_and(|labels| selector.has(labels))
                }
            };
            is_there && peer.pods.has(&pod.labels)
        })
    }
}

#[cfg(test)]
pub mod tests;
