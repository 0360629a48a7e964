//! What is known, under keys of Services, with the ways from an address back to them. Pure.
//!
//! Each change gives back the keys whose entry is another one now: none when it showed nothing new.

use super::{Entry, Key, Service, Slice, key, parts};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Tables {
    entries: BTreeMap<Key, Entry>,
    /// By cluster IP. Of two that claim one, which the server prevents, the later has it.
    at: BTreeMap<IpAddr, Key>,
    with_endpoint: BTreeSet<(IpAddr, Key)>,
    /// From `NAMESPACE/NAME` of a slice to its Service: the label may change.
    slice_of: HashMap<Box<str>, Key>,
}

impl Tables {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter()
    }

    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&Key, &Entry)> {
        let namespace = namespace.to_owned();
        let start = key(&namespace, "");
        let from = self
            .entries
            .range::<str, _>((Bound::Included(&*start), Bound::Unbounded));
        from.take_while(move |(key, _)| parts(key).0 == namespace)
    }

    pub fn service_at(&self, address: IpAddr) -> Option<Key> {
        self.at.get(&address).cloned()
    }

    pub fn services_of_endpoint(&self, address: IpAddr) -> Vec<Key> {
        let start = (address, Key::from(""));
        let from = self.with_endpoint.range(start..);
        let with = from.take_while(|(known, _)| *known == address);
        with.map(|(_, key)| key.clone()).collect()
    }

    pub fn set_service(&mut self, key: &Key, service: Option<Service>) -> Vec<Key> {
        let known = self.entries.get(key);
        let known = known.and_then(|entry| entry.service.as_deref());
        if known == service.as_ref() {
            return Vec::new();
        }
        for address in known
            .map(|known| known.cluster_ips.clone())
            .iter()
            .flatten()
        {
            if self.at.get(address) == Some(key) {
                self.at.remove(address);
            }
        }
        for address in service
            .iter()
            .flat_map(|service| service.cluster_ips.iter())
        {
            self.at.insert(*address, key.clone());
        }
        self.update(key, |entry| entry.service = service.map(Arc::new));
        vec![key.clone()]
    }

    /// `name` is `NAMESPACE/NAME` of the slice; None takes it away.
    pub fn set_slice(&mut self, name: &str, found: Option<(Key, Slice)>) -> Vec<Key> {
        let mut changed = Vec::new();
        let old = self.slice_of.get(name).cloned();
        let is_moved = |old: &Key| found.as_ref().is_none_or(|(key, _)| key != old);
        if let Some(old) = old.filter(is_moved) {
            self.slice_of.remove(name);
            self.put_slice(&old, parts(name).1, None);
            changed.push(old);
        }
        let Some((key, slice)) = found else {
            return changed;
        };
        let known = self
            .entries
            .get(&key)
            .and_then(|entry| place(entry, &slice.name).ok());
        let known = known.map(|place| &*self.entries[&key].slices[place]);
        if known == Some(&slice) {
            return changed;
        }
        self.slice_of.insert(name.into(), key.clone());
        self.put_slice(&key, parts(name).1, Some(slice));
        changed.push(key);
        changed
    }

    /// Takes away the Services that a whole list did not show.
    pub fn retain_services(&mut self, listed: &HashSet<Key>) -> Vec<Key> {
        let gone = self
            .entries
            .iter()
            .filter(|(key, entry)| entry.service.is_some() && !listed.contains(*key));
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        for key in &gone {
            self.set_service(key, None);
        }
        gone
    }

    /// Takes away the slices that a whole list did not show, by `NAMESPACE/NAME`.
    pub fn retain_slices(&mut self, listed: &HashSet<Box<str>>) -> Vec<Key> {
        let names = self.slice_of.keys();
        let gone: Vec<_> = names
            .filter(|name| !listed.contains(*name))
            .cloned()
            .collect();
        gone.iter()
            .flat_map(|name| self.set_slice(name, None))
            .collect()
    }

    fn put_slice(&mut self, key: &Key, name: &str, slice: Option<Slice>) {
        let new = slice.map(Arc::new);
        let mut old = None;
        let placed = new.clone();
        self.update(key, |entry| {
            old = match (place(entry, name), placed) {
                (Ok(place), Some(slice)) => {
                    Some(std::mem::replace(&mut entry.slices[place], slice))
                }
                (Ok(place), None) => Some(entry.slices.remove(place)),
                (Err(place), Some(slice)) => {
                    entry.slices.insert(place, slice);
                    None
                }
                (Err(_), None) => None,
            };
        });
        for address in new.iter().flat_map(|slice| addresses(slice)) {
            self.with_endpoint.insert((address, key.clone()));
        }
        let Some(old) = old else {
            return;
        };
        let entry = self.entries.get(key);
        let left = entry.iter().flat_map(|entry| &entry.slices);
        let left: HashSet<_> = left.flat_map(|slice| addresses(slice)).collect();
        for address in addresses(&old).filter(|address| !left.contains(address)) {
            self.with_endpoint.remove(&(address, key.clone()));
        }
    }

    /// An entry is there as long as it holds something.
    fn update(&mut self, key: &Key, change: impl FnOnce(&mut Entry)) {
        let entry = self.entries.entry(key.clone()).or_default();
        change(entry);
        if entry.is_empty() {
            self.entries.remove(key);
        }
    }
}

fn place(entry: &Entry, name: &str) -> Result<usize, usize> {
    entry
        .slices
        .binary_search_by(|slice| slice.name.as_ref().cmp(name))
}

fn addresses(slice: &Slice) -> impl Iterator<Item = IpAddr> {
    let endpoints = slice.endpoints.iter();
    endpoints.flat_map(|endpoint| endpoint.addresses.iter().copied())
}
