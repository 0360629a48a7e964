//! What the kernel has of policies, and the words for changes of it. Pure.

use super::super::plan::{self, Content, Group, Span};
use super::super::record::{Direction, Key};
use crate::network::nft::Range;
use crate::network::stale::Stale;
use crate::network::view::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The name of a pod's link on the node's side.
pub type Link = Arc<str>;

/// Of one batch.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// With their rules.
    pub chains: Vec<Chain>,
    /// Out of the sets and maps, before others come in.
    pub going: Vec<Entry>,
    pub coming: Vec<Entry>,
    /// Nothing leads to them any more, as soon as all of this is taken.
    pub emptied: Vec<u32>,
    pub deleted: Vec<u32>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Eq, PartialEq)]
pub struct Chain {
    pub number: u32,
    pub direction: Direction,
    /// What passes; all else is dropped.
    pub lines: Vec<Line>,
}

#[derive(Debug, Eq, PartialEq)]
pub struct Line {
    pub policy: Key,
    pub who: Who,
    /// Empty: all ports.
    pub spans: Box<[Span]>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Who {
    Everyone,
    /// Of the group of this number.
    Peers(u32),
    /// At the ports that are with their addresses.
    PeerPorts(u32),
    Blocks {
        number: u32,
        has_v4: bool,
        has_v6: bool,
    },
}

/// Of a set or a map.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Entry {
    Peer(u32, IpAddr),
    PeerPort(u32, IpAddr, Protocol, u16),
    Block(u32, Range),
    /// The pod behind the link may reach its own address.
    Itself(Link, IpAddr),
    /// Leads to the chain of the number.
    Link(Direction, Link, u32),
}

/// What an address is in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Member {
    Any(u32),
    Port(u32, Protocol, u16),
}

impl Member {
    fn entry(self, address: IpAddr) -> Entry {
        match self {
            Self::Any(group) => Entry::Peer(group, address),
            Self::Port(group, protocol, port) => Entry::PeerPort(group, address, protocol, port),
        }
    }

    fn group(self) -> u32 {
        match self {
            Self::Any(group) | Self::Port(group, ..) => group,
        }
    }
}

#[derive(Debug, Default)]
pub struct Written {
    chains: Numbered<Arc<Content>>,
    groups: Numbered<Arc<Group>>,
    blocks: Numbered<Arc<[Range]>>,
    /// By direction.
    links: BTreeMap<Link, [Option<Arc<Content>>; 2]>,
    itself: BTreeMap<Link, Box<[IpAddr]>>,
    members: BTreeMap<IpAddr, Box<[Member]>>,
    stale: Stale<u32>,
}

/// Things that are there as long as something uses them.
#[derive(Debug)]
struct Numbered<T> {
    all: BTreeMap<T, Used>,
    next: u32,
}

type WithNumbers<T> = Vec<(T, u32)>;

#[derive(Debug)]
struct Used {
    number: u32,
    users: u32,
    is_new: bool,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T: Clone + Ord> Numbered<T> {
    fn take(&mut self, thing: &T) -> u32 {
        let next = &mut self.next;
        let used = self.all.entry(thing.clone()).or_insert_with(|| {
            *next += 1;
            Used {
                number: *next,
                users: 0,
                is_new: true,
            }
        });
        used.users += 1;
        used.number
    }

    fn leave(&mut self, thing: &T) {
        if let Some(used) = self.all.get_mut(thing) {
            used.users -= 1;
        }
    }

    /// What has come, and what has gone.
    fn settle(&mut self) -> (WithNumbers<T>, WithNumbers<T>) {
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        self.all.retain(|thing, used| {
            let was_new = std::mem::replace(&mut used.is_new, false);
            match (used.users > 0, was_new) {
                (true, true) => new.push((thing.clone(), used.number)),
                (false, false) => gone.push((thing.clone(), used.number)),
                _ => {}
            }
            used.users > 0
        });
        (new, gone)
    }

    fn number(&self, thing: &T) -> u32 {
        self.all.get(thing).map_or(0, |used| used.number)
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.all.iter().map(|(thing, used)| (used.number, thing))
    }
}

impl Written {
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(number, group)| (number, &**group))
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.members.keys().copied()
    }

    /// `settle` follows when all are set. None for what is not isolated.
    pub fn set_link(
        &mut self,
        link: &Link,
        contents: [Option<Arc<Content>>; 2],
        addresses: &[IpAddr],
        changes: &mut Changes,
    ) {
        let is_isolated = contents.iter().any(Option::is_some);
        let itself = if is_isolated { addresses } else { &[] };
        let before = match itself {
            [] => self.itself.remove(link),
            _ => self.itself.insert(link.clone(), itself.into()),
        };
        let before = before.unwrap_or_default();
        let entry = |address: &IpAddr| Entry::Itself(link.clone(), *address);
        let gone = before.iter().filter(|one| !itself.contains(one));
        changes.going.extend(gone.map(entry));
        let new = itself.iter().filter(|one| !before.contains(one));
        changes.coming.extend(new.map(entry));
        let before = match is_isolated {
            true => self.links.insert(link.clone(), contents.clone()),
            false => self.links.remove(link),
        };
        for (old, new) in before.unwrap_or_default().into_iter().zip(contents) {
            if old == new {
                continue;
            }
            // The old one stays there until all is settled.
            if let Some(content) = &new {
                let number = self.chains.take(content);
                let entry = Entry::Link(content.direction, link.clone(), number);
                changes.coming.push(entry);
            }
            if let Some(content) = &old {
                let number = self.chains.number(content);
                let entry = Entry::Link(content.direction, link.clone(), number);
                changes.going.push(entry);
                self.chains.leave(content);
            }
        }
    }

    /// Chains, and what they look into, are there from now on as long as they are used. True when
    /// there are other groups now.
    pub fn settle(&mut self, changes: &mut Changes) -> bool {
        let (new, gone) = self.chains.settle();
        for (content, number) in &new {
            // A former agent may have left one of this number.
            self.stale.remove(number);
            for allow in &content.allows {
                match &allow.who {
                    plan::Who::Pods(group) => _ = self.groups.take(group),
                    plan::Who::Blocks(blocks) => _ = self.blocks.take(blocks),
                    plan::Who::Everyone => {}
                }
            }
        }
        for (content, number) in &gone {
            for allow in &content.allows {
                match &allow.who {
                    plan::Who::Pods(group) => self.groups.leave(group),
                    plan::Who::Blocks(blocks) => self.blocks.leave(blocks),
                    plan::Who::Everyone => {}
                }
            }
            changes.emptied.push(*number);
            self.stale.add(*number);
        }
        let (new_blocks, gone_blocks) = self.blocks.settle();
        changes.coming.extend(entries_of(&new_blocks));
        changes.going.extend(entries_of(&gone_blocks));
        let (new_groups, gone_groups) = self.groups.settle();
        let chains = new.iter();
        let chains = chains.map(|(content, number)| self.chain(content, *number));
        changes.chains.extend(chains);
        !new_groups.is_empty() || !gone_groups.is_empty()
    }

    fn chain(&self, content: &Content, number: u32) -> Chain {
        let lines = content.allows.iter().map(|allow| Line {
            policy: allow.policy.clone(),
            who: self.who(&allow.who),
            spans: allow.spans.clone(),
        });
        Chain {
            number,
            direction: content.direction,
            lines: lines.collect(),
        }
    }

    fn who(&self, who: &plan::Who) -> Who {
        match who {
            plan::Who::Everyone => Who::Everyone,
            plan::Who::Pods(group) if group.port.is_some() => {
                Who::PeerPorts(self.groups.number(group))
            }
            plan::Who::Pods(group) => Who::Peers(self.groups.number(group)),
            plan::Who::Blocks(blocks) => Who::Blocks {
                number: self.blocks.number(blocks),
                has_v4: blocks.iter().any(|block| block.first.is_ipv4()),
                has_v6: blocks.iter().any(|block| block.first.is_ipv6()),
            },
        }
    }

    pub fn set_members(&mut self, address: IpAddr, members: Box<[Member]>, changes: &mut Changes) {
        let old = self.members.remove(&address).unwrap_or_default();
        let gone = old.iter().filter(|one| !members.contains(one));
        changes.going.extend(gone.map(|one| one.entry(address)));
        let new = members.iter().filter(|one| !old.contains(one));
        changes.coming.extend(new.map(|one| one.entry(address)));
        debug_assert!(members.iter().all(|one| one.group() > 0));
        if !members.is_empty() {
            self.members.insert(address, members);
        }
    }

    pub fn whole(&mut self, there: impl IntoIterator<Item = u32>) -> Changes {
        let mut changes = Changes::default();
        for (number, content) in self.chains.iter() {
            changes.chains.push(self.chain(content, number));
        }
        for (number, blocks) in self.blocks.iter() {
            let blocks = blocks.iter().map(|block| Entry::Block(number, *block));
            changes.coming.extend(blocks);
        }
        for (address, members) in &self.members {
            let entries = members.iter().map(|member| member.entry(*address));
            changes.coming.extend(entries);
        }
        for (link, addresses) in &self.itself {
            let entries = addresses.iter();
            let entries = entries.map(|address| Entry::Itself(link.clone(), *address));
            changes.coming.extend(entries);
        }
        for (link, contents) in &self.links {
            for content in contents.iter().flatten() {
                let number = self.chains.number(content);
                let entry = Entry::Link(content.direction, link.clone(), number);
                changes.coming.push(entry);
            }
        }
        let wanted: BTreeSet<u32> = changes.chains.iter().map(|chain| chain.number).collect();
        let there = there.into_iter();
        self.stale
            .replace(there.filter(|number| !wanted.contains(number)));
        changes.emptied = self.stale.fresh().copied().collect();
        changes
    }

    pub fn sweep(&mut self) -> Changes {
        Changes {
            deleted: self.stale.sweep().into_iter().collect(),
            ..Changes::default()
        }
    }

    pub fn has_stale(&self) -> bool {
        self.stale.has_any()
    }
}

fn entries_of(blocks: &[(Arc<[Range]>, u32)]) -> impl Iterator<Item = Entry> {
    blocks.iter().flat_map(|(blocks, number)| {
        let blocks = blocks.iter();
        blocks.map(move |block| Entry::Block(*number, *block))
    })
}
