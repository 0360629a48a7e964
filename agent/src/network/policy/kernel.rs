//! Changes as messages for the kernel, and what stands around the pods' chains. Pure.
//!
//! Who is isolated is found by the name of its link, which a pod cannot choose as it can choose the
//! address that it sends from. Names of what is always there begin with `policy-`, those of chains
//! of pods with `pol-`.

use super::record::{Direction, Key};
use super::state::{Chain, Changes, Entry, Line, Link, Who};
use crate::network::nft::{
    self, Batch, CT_ESTABLISHED, CT_RELATED, ChainFound, Datum, Element, Family, Field, Kind, Part,
    Rule, Set, SetFound, Test, Verdict,
};
use crate::network::table::{POLICY_FORWARD, POLICY_INPUT, POLICY_OUTPUT};
use std::net::IpAddr;

const CHAIN_PREFIX: &str = "pol-";
const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];
/// Links to chains.
const EGRESS: &str = "policy-egress";
const INGRESS: &str = "policy-ingress";
/// Neighbours that look for each other, from router solicitations to redirects: type and code.
const DISCOVERY: (u16, u16) = (133 << 8, 137 << 8 | 0xff);
const ICMP6: u8 = 58;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lookup {
    Peers,
    PeerPorts,
    Blocks,
    Itself,
}

const LOOKUPS: [Lookup; 4] = [
    Lookup::Peers,
    Lookup::PeerPorts,
    Lookup::Blocks,
    Lookup::Itself,
];

impl Lookup {
    fn name(self, family: Family) -> &'static str {
        match (self, family) {
            (Self::Peers, Family::Ip4) => "policy-peers4",
            (Self::Peers, Family::Ip6) => "policy-peers6",
            (Self::PeerPorts, Family::Ip4) => "policy-ports4",
            (Self::PeerPorts, Family::Ip6) => "policy-ports6",
            (Self::Blocks, Family::Ip4) => "policy-blocks4",
            (Self::Blocks, Family::Ip6) => "policy-blocks6",
            (Self::Itself, Family::Ip4) => "policy-itself4",
            (Self::Itself, Family::Ip6) => "policy-itself6",
        }
    }

    fn key(self, family: Family) -> Vec<Kind> {
        let ip = family.kind();
        match self {
            Self::Peers | Self::Blocks => vec![Kind::Number, ip],
            Self::PeerPorts => vec![Kind::Number, ip, Kind::Protocol, Kind::Port],
            Self::Itself => vec![Kind::Interface, ip],
        }
    }

    fn set(self, family: Family) -> Set {
        let set = Set::new(self.name(family), &self.key(family));
        match self {
            Self::Blocks => set.intervals(),
            _ => set,
        }
    }
}

fn map_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => INGRESS,
        Direction::Egress => EGRESS,
    }
}

/// What leads to pods' chains. Without them no agent was here before.
pub fn maps(sets: &[SetFound]) -> impl Iterator<Item = &SetFound> {
    let names = [EGRESS, INGRESS];
    sets.iter().filter(move |set| names.contains(&&*set.name))
}

/// The numbers of pods' chains.
pub fn of_pods(chains: &[ChainFound]) -> impl Iterator<Item = u32> {
    let names = chains.iter().map(|chain| chain.name.as_str());
    names.filter_map(|name| name.strip_prefix(CHAIN_PREFIX)?.parse().ok())
}

fn chain_name(number: u32) -> String {
    format!("{CHAIN_PREFIX}{number}")
}

/// All of it, in place of whatever is there under our names.
pub fn whole(changes: &Changes, chains: &[ChainFound], sets: &[SetFound]) -> Batch {
    let mut batch = Batch::new();
    for chain in [POLICY_FORWARD, POLICY_INPUT, POLICY_OUTPUT] {
        batch.flush_chain(chain);
    }
    for number in of_pods(chains) {
        batch.flush_chain(&chain_name(number));
    }
    for family in FAMILIES {
        for lookup in LOOKUPS {
            let name = lookup.name(family);
            renew(&mut batch, sets, name, &lookup.key(family));
            batch.add_set(&lookup.set(family));
        }
    }
    for map in [EGRESS, INGRESS] {
        renew(&mut batch, sets, map, &[Kind::Interface]);
        batch.add_set(&Set::verdict_map(map, &[Kind::Interface]));
    }
    for rule in frame() {
        batch.add_rule(&rule);
    }
    add(&mut batch, changes);
    batch
}

fn renew(batch: &mut Batch, sets: &[SetFound], name: &str, key: &[Kind]) {
    match sets.iter().find(|set| set.name == name) {
        Some(found) if found.key.as_deref() != Some(key) => batch.delete_set(name),
        Some(_) => batch.flush_set(name),
        None => {}
    }
}

/// A change of what is there.
pub fn changes(changes: &Changes) -> Batch {
    let mut batch = Batch::new();
    add(&mut batch, changes);
    batch
}

/// What does not depend on any policy. To a pod from its own node everything passes: nothing is
/// asked on the way out of it.
fn frame() -> Vec<Rule> {
    let known = |chain| {
        Rule::new(chain)
            .has_bits(Field::ConnectionState, CT_ESTABLISHED | CT_RELATED)
            .verdict(&Verdict::Return)
    };
    let egress = |chain| Rule::new(chain).verdict_map([Field::InputLink], EGRESS);
    let itself = FAMILIES.map(|family| {
        Rule::new(POLICY_FORWARD)
            .in_set(
                [Field::InputLink, Field::Source(family)],
                Lookup::Itself.name(family),
            )
            .in_set(
                [Field::InputLink, Field::Destination(family)],
                Lookup::Itself.name(family),
            )
            .verdict(&Verdict::Return)
            .comment("a pod that reaches itself")
    });
    let discovery = Rule::new(POLICY_INPUT)
        .family(Family::Ip6)
        .is(Field::Protocol, Datum::Protocol(ICMP6))
        .test(Field::SourcePort, Test::AtLeast, &Datum::Port(DISCOVERY.0))
        .test(Field::SourcePort, Test::AtMost, &Datum::Port(DISCOVERY.1))
        .verdict(&Verdict::Return)
        .comment("a pod that looks for the node");
    let [itself_v4, itself_v6] = itself;
    vec![
        known(POLICY_FORWARD),
        itself_v4,
        itself_v6,
        egress(POLICY_FORWARD),
        Rule::new(POLICY_FORWARD).verdict_map([Field::OutputLink], INGRESS),
        known(POLICY_INPUT),
        discovery,
        egress(POLICY_INPUT),
    ]
}

fn add(batch: &mut Batch, changes: &Changes) {
    for chain in &changes.chains {
        let name = chain_name(chain.number);
        batch.add_chain(&nft::Chain::plain(&*name));
        batch.flush_chain(&name);
        for rule in chain
            .lines
            .iter()
            .flat_map(|line| rules(&name, chain, line))
        {
            batch.add_rule(&rule);
        }
        batch.add_rule(&Rule::new(&*name).drop());
    }
    for (set, entries) in by_set(&changes.going) {
        batch.delete_elements(set, entries.into_iter().map(element));
    }
    for (set, entries) in by_set(&changes.coming) {
        batch.add_elements(set, entries.into_iter().map(element));
    }
    for number in &changes.emptied {
        batch.flush_chain(&chain_name(*number));
    }
    for number in &changes.deleted {
        batch.delete_chain(&chain_name(*number));
    }
}

fn by_set(entries: &[Entry]) -> Vec<(&'static str, Vec<&Entry>)> {
    let mut all: Vec<(&'static str, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        let name = set_name(entry);
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(entry),
            None => all.push((name, vec![entry])),
        }
    }
    all
}

fn set_name(entry: &Entry) -> &'static str {
    let of = |lookup: Lookup, address: &IpAddr| lookup.name(Family::of(*address));
    match entry {
        Entry::Peer(_, address) => of(Lookup::Peers, address),
        Entry::PeerPort(_, address, ..) => of(Lookup::PeerPorts, address),
        Entry::Block(_, block) => of(Lookup::Blocks, &block.first),
        Entry::Itself(_, address) => of(Lookup::Itself, address),
        Entry::Link(direction, ..) => map_name(*direction),
    }
}

fn element(entry: &Entry) -> Element {
    match entry {
        Entry::Peer(group, address) => Element::new([Datum::Number(*group), (*address).into()]),
        Entry::PeerPort(group, address, protocol, port) => Element::new([
            Datum::Number(*group),
            (*address).into(),
            Datum::Protocol(protocol.number()),
            Datum::Port(*port),
        ]),
        Entry::Block(number, block) => Element::new([Datum::Number(*number), block.first.into()])
            .until([Datum::Number(*number), block.last.into()]),
        Entry::Itself(link, address) => Element::new([interface(link), (*address).into()]),
        Entry::Link(_, link, chain) => {
            Element::new([interface(link)]).verdict(Verdict::Jump(chain_name(*chain)))
        }
    }
}

fn interface(link: &Link) -> Datum {
    Datum::Interface(link.to_string())
}

fn rules(name: &str, chain: &Chain, line: &Line) -> Vec<Rule> {
    let from = conditions(name, chain.direction, line.who);
    let each = from.into_iter().flat_map(|rule| {
        if line.spans.is_empty() {
            return vec![rule];
        }
        let spans = line.spans.iter();
        spans
            .map(|span| {
                let protocol = Datum::Protocol(span.protocol.number());
                at_ports(
                    rule.clone().is(Field::Protocol, protocol),
                    span.first,
                    span.last,
                )
            })
            .collect()
    });
    each.map(|rule| allow(rule, &line.policy)).collect()
}

fn allow(rule: Rule, policy: &Key) -> Rule {
    rule.verdict(&Verdict::Return).comment(policy)
}

fn conditions(chain: &str, direction: Direction, who: Who) -> Vec<Rule> {
    let field = |family| match direction {
        Direction::Ingress => Field::Source(family),
        Direction::Egress => Field::Destination(family),
    };
    let of = |lookup: Lookup, number: u32, family: Family| {
        let number = Part::Constant(Datum::Number(number));
        let mut key = vec![number, field(family).into()];
        if lookup == Lookup::PeerPorts {
            key.extend([Field::Protocol, Field::DestinationPort].map(Part::from));
        }
        Rule::new(chain).in_set(key, lookup.name(family))
    };
    match who {
        Who::Everyone => vec![Rule::new(chain)],
        Who::Peers(number) => FAMILIES
            .map(|family| of(Lookup::Peers, number, family))
            .into(),
        Who::PeerPorts(number) => FAMILIES
            .map(|family| of(Lookup::PeerPorts, number, family))
            .into(),
        Who::Blocks {
            number,
            has_v4,
            has_v6,
        } => [(Family::Ip4, has_v4), (Family::Ip6, has_v6)]
            .into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(family, _)| of(Lookup::Blocks, number, family))
            .collect(),
    }
}

fn at_ports(rule: Rule, first: u16, last: u16) -> Rule {
    let port = Field::DestinationPort;
    match (first, last) {
        (0, u16::MAX) => rule,
        _ if first == last => rule.is(port, Datum::Port(first)),
        _ => rule.test(port, Test::AtLeast, &Datum::Port(first)).test(
            port,
            Test::AtMost,
            &Datum::Port(last),
        ),
    }
}

#[cfg(test)]
mod tests;
