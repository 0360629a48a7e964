//! Steps as messages for the kernel, and what stands around the chains of Services: where packets
//! enter, the maps that they are looked up in, and what is done as they leave.
//!
//! Names of what is always there begin with `services`, those of Services' chains with `svc-`.
//! Nothing else in the table is touched. Pure.

use super::node::Node;
use super::plan::CHAIN_PREFIX;
use super::steps::{
    Balance, Element, FAMILIES, Family, Frontend, NodePort, Rule, Step, Sticky, Target, Value,
    digit,
};
use crate::network::nft::{
    self, Batch, CT_DNAT, CT_NEW, Chain, ChainFound, Datum, FIB_LOCAL, Field, Kind, Mark, Nat,
    Part, Reject, Remember, Set, SetFound, Test, Verdict,
};
use crate::network::table::{SERVICES, SERVICES_CLOSED, SERVICES_GUARD, SERVICES_MASQUERADE};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// On packets that are to be masqueraded, until they leave: the bit that Kubernetes uses.
const MASQUERADE_MARK: u32 = 0x4000;
/// Clients whose endpoint is kept at one time, a family; others are sent by chance.
const STICKY_CLIENTS_MAX: u32 = 65_536;

/// Before the names of our maps and sets.
const PREFIX: &str = "services-";
const REJECT: &str = "services-reject";

/// The chains that are ours alone, and there before us.
const FRAME: [&str; 4] = [
    SERVICES_GUARD,
    SERVICES,
    SERVICES_CLOSED,
    SERVICES_MASQUERADE,
];

/// What packets are looked up in, one a family.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lookup {
    Frontends,
    Closed,
    Guarded,
    NodePorts,
    ClosedNodePorts,
    ClusterIps,
    Hairpins,
    /// Of all lists: number of the list and place to address and port.
    Endpoints,
    /// Number of the port's affinity and client to address and port; packets fill it.
    Affinity,
    /// Of the lists that affinity asks about.
    Members,
}

const LOOKUPS: [Lookup; 10] = [
    Lookup::Frontends,
    Lookup::Closed,
    Lookup::Guarded,
    Lookup::NodePorts,
    Lookup::ClosedNodePorts,
    Lookup::ClusterIps,
    Lookup::Hairpins,
    Lookup::Endpoints,
    Lookup::Affinity,
    Lookup::Members,
];

impl Lookup {
    fn name(self, family: Family) -> String {
        let name = match self {
            Self::Frontends => "frontends",
            Self::Closed => "closed",
            Self::Guarded => "guarded",
            Self::NodePorts => "node-ports",
            Self::ClosedNodePorts => "closed-node-ports",
            Self::ClusterIps => "cluster-ips",
            Self::Hairpins => "hairpins",
            Self::Endpoints => "endpoints",
            Self::Affinity => "affinity",
            Self::Members => "members",
        };
        format!("{PREFIX}{name}{}", digit(family))
    }

    /// Of its key, and of the data that a map has.
    fn kinds(self, family: Family) -> (Vec<Kind>, Vec<Kind>) {
        use Kind::{Number, Port, Protocol};
        let ip = family.kind();
        match self {
            Self::Frontends | Self::Closed | Self::Guarded => (vec![ip, Protocol, Port], vec![]),
            Self::NodePorts | Self::ClosedNodePorts => (vec![Protocol, Port], vec![]),
            Self::ClusterIps => (vec![ip], vec![]),
            Self::Hairpins => (vec![ip, ip], vec![]),
            Self::Endpoints => (vec![Number, Number, Number], vec![ip, Port]),
            Self::Affinity => (vec![Number, Number, ip], vec![ip, Port]),
            Self::Members => (vec![Number, Number, ip, Port], vec![]),
        }
    }

    fn set(self, family: Family) -> Set {
        let (name, (key, data)) = (self.name(family), self.kinds(family));
        match self {
            Self::Frontends
            | Self::Closed
            | Self::Guarded
            | Self::NodePorts
            | Self::ClosedNodePorts => Set::verdict_map(name, &key),
            Self::ClusterIps | Self::Hairpins | Self::Members => Set::new(name, &key),
            Self::Endpoints => Set::map(name, &key, &data),
            Self::Affinity => {
                let map = Set::map(name, &key, &data).timeout(None);
                map.dynamic(STICKY_CLIENTS_MAX)
            }
        }
    }
}

fn halves(number: u64) -> [u32; 2] {
    let bytes = number.to_be_bytes();
    let (high, low) = bytes.split_at(4);
    [high, low].map(|half| u32::from_be_bytes(*half.first_chunk().expect("eight bytes")))
}

/// All of it, in place of whatever is there under our names. What clients hold to by their
/// affinity stays.
pub fn whole(node: &Node, steps: &[Step], chains: &[ChainFound], sets: &[SetFound]) -> Batch {
    let mut batch = Batch::new();
    batch.add_chain(&Chain::plain(REJECT));
    for chain in FRAME.into_iter().chain([REJECT]) {
        batch.flush_chain(chain);
    }
    for chain in of_services(chains) {
        batch.flush_chain(chain);
    }
    for family in FAMILIES {
        for lookup in LOOKUPS {
            let (name, kinds) = (lookup.name(family), lookup.kinds(family));
            let found = sets.iter().find(|found| found.name == name);
            match found.map(|found| (found.key.clone(), found.data.clone())) {
                Some((key, data)) if key.as_ref() != Some(&kinds.0) || data != kinds.1 => {
                    batch.delete_set(&name);
                }
                Some(_) if lookup != Lookup::Affinity => batch.flush_set(&name),
                _ => {}
            }
            batch.add_set(&lookup.set(family));
        }
    }
    for rule in frame(node) {
        batch.add_rule(&rule);
    }
    add(&mut batch, steps);
    batch
}

/// Takes away what leads anywhere. Nothing to do where there is nothing under our names.
pub fn without_rules(chains: &[ChainFound], sets: &[SetFound]) -> Batch {
    let mut batch = Batch::new();
    let ours: Vec<_> = own(chains).collect();
    let lookups = FAMILIES.map(|family| LOOKUPS.map(|lookup| lookup.name(family)));
    let lookups: Vec<_> = lookups.into_iter().flatten().collect();
    let sets: Vec<_> = sets
        .iter()
        .filter(|set| lookups.contains(&set.name))
        .collect();
    if ours.is_empty() && sets.is_empty() {
        return batch;
    }
    for chain in FRAME.into_iter().chain(ours) {
        batch.flush_chain(chain);
    }
    for set in sets {
        batch.delete_set(&set.name);
    }
    batch
}

/// Takes away the chains that are empty since `without_rules`; those of the table stay.
pub fn without_chains(chains: &[ChainFound]) -> Batch {
    let mut batch = Batch::new();
    for chain in own(chains) {
        batch.delete_chain(chain);
    }
    batch
}

/// Those of Services, and those that are always there with them.
fn own(chains: &[ChainFound]) -> impl Iterator<Item = &str> {
    let reject = chains.iter().map(|chain| chain.name.as_str());
    of_services(chains).chain(reject.filter(|name| *name == REJECT))
}

/// The names of Services' chains.
pub fn of_services(chains: &[ChainFound]) -> impl Iterator<Item = &str> {
    let names = chains.iter().map(|chain| chain.name.as_str());
    names.filter(|name| name.starts_with(CHAIN_PREFIX))
}

/// A change of what is there.
pub fn changes(steps: &[Step]) -> Batch {
    let mut batch = Batch::new();
    add(&mut batch, steps);
    batch
}

fn rule(chain: &str) -> nft::Rule {
    nft::Rule::new(chain)
}

/// What does not depend on any Service.
fn frame(node: &Node) -> Vec<nft::Rule> {
    // Translation sees the first packet of a connection only; what guards it needs no more.
    let known = |chain: &str| rule(chain).lacks_bits(Field::ConnectionState, CT_NEW);
    let mut rules = vec![
        known(SERVICES_GUARD).verdict(&Verdict::Return),
        known(SERVICES_CLOSED).verdict(&Verdict::Return),
        rule(REJECT).reject(Reject::PortUnreachable),
    ];
    let leaving = rule(SERVICES_MASQUERADE).has_bits(Field::Mark, MASQUERADE_MARK);
    rules.push(masquerade(leaving.set_mark(
        Mark::Packet,
        MASQUERADE_MARK,
        0,
    )));
    for family in FAMILIES {
        let (from, to) = (Field::Source(family), Field::Destination(family));
        let way = [to, Field::Protocol, Field::DestinationPort];
        rules.extend(from_outside(node, family));
        rules.push(rule(SERVICES).verdict_map(way, &Lookup::Frontends.name(family)));
        let to_node = to_node(SERVICES, family);
        rules.push(to_node.verdict_map(&way[1..], &Lookup::NodePorts.name(family)));
        rules.push(rule(SERVICES_GUARD).verdict_map(way, &Lookup::Guarded.name(family)));
        rules.extend(closed(family, way));
        let hairpin = rule(SERVICES_MASQUERADE).has_bits(Field::ConnectionStatus, CT_DNAT);
        let hairpin = hairpin.in_set([from, to], &Lookup::Hairpins.name(family));
        rules.push(masquerade(hairpin));
    }
    rules
}

/// What no endpoint answers, and ports that no Service has on an address of one.
fn closed(family: Family, way: [Field; 3]) -> [nft::Rule; 3] {
    let strays = rule(SERVICES_CLOSED).in_set([way[0]], &Lookup::ClusterIps.name(family));
    let node_ports = Lookup::ClosedNodePorts.name(family);
    [
        rule(SERVICES_CLOSED).verdict_map(way, &Lookup::Closed.name(family)),
        strays.goto(REJECT),
        to_node(SERVICES_CLOSED, family).verdict_map(&way[1..], &node_ports),
    ]
}

/// Who is no pod of this node may be answered on another way than it came by.
fn from_outside(node: &Node, family: Family) -> Option<nft::Rule> {
    let pods = node.pod_cidrs.iter();
    let mut pods = pods
        .filter(|cidr| Family::of(cidr.base()) == family)
        .peekable();
    pods.peek()?;
    let to = Field::Destination(family);
    let mut rule = rule(SERVICES).in_set([to], &Lookup::ClusterIps.name(family));
    for cidr in pods {
        rule = rule.in_network(
            Field::Source(family),
            Test::IsNot,
            cidr.base(),
            cidr.prefix_length,
        );
    }
    Some(mark(rule))
}

fn mark(rule: nft::Rule) -> nft::Rule {
    rule.set_mark(Mark::Packet, MASQUERADE_MARK, MASQUERADE_MARK)
}

fn masquerade(rule: nft::Rule) -> nft::Rule {
    rule.masquerade(Nat {
        random_fully: true,
        ..Nat::default()
    })
}

/// To an address of this node on which it can be reached.
fn to_node(chain: &str, family: Family) -> nft::Rule {
    let (address, prefix) = match family {
        Family::Ip4 => (IpAddr::from(Ipv4Addr::LOCALHOST), 8),
        Family::Ip6 => (IpAddr::from(Ipv6Addr::LOCALHOST), 128),
    };
    let to = Field::Destination(family);
    rule(chain)
        .in_network(to, Test::IsNot, address, prefix)
        .is(Field::DestinationType, Datum::Number(FIB_LOCAL))
}

/// Elements of one map that follow each other become one message.
fn add(batch: &mut Batch, steps: &[Step]) {
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let Some(way) = way(first) else {
            add_step(batch, first);
            rest = &rest[1..];
            continue;
        };
        let end = rest.iter().position(|step| self::way(step) != Some(way));
        let (run, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let elements = run.iter().filter_map(element);
        let set = way.lookup.name(way.family);
        if way.is_in {
            batch.add_elements(&set, elements);
        } else {
            batch.delete_elements(&set, elements);
        }
        rest = behind;
    }
}

/// Whether an element comes or goes, and what it is in.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Way {
    is_in: bool,
    lookup: Lookup,
    family: Family,
}

fn way(step: &Step) -> Option<Way> {
    let of = |target: &Target| Family::of(target.address);
    let (is_in, (lookup, family)) = match step {
        Step::Add(element, _) => (true, place(element)),
        Step::Delete(element, _) => (false, place(element)),
        Step::AddTarget { target, .. } => (true, (Lookup::Endpoints, of(target))),
        Step::DeleteTarget { target, .. } => (false, (Lookup::Endpoints, of(target))),
        Step::AddMember(_, target) => (true, (Lookup::Members, of(target))),
        Step::DeleteMember(_, target) => (false, (Lookup::Members, of(target))),
        Step::AddChain(_) | Step::SetRules(..) | Step::DeleteChain(_) => return None,
    };
    Some(Way {
        is_in,
        lookup,
        family,
    })
}

fn place(element: &Element) -> (Lookup, Family) {
    match element {
        Element::Frontend(of) => (Lookup::Frontends, Family::of(of.address)),
        Element::Closed(of) => (Lookup::Closed, Family::of(of.address)),
        Element::Guarded(of) => (Lookup::Guarded, Family::of(of.address)),
        Element::NodePort(of) => (Lookup::NodePorts, of.family),
        Element::ClosedNodePort(of) => (Lookup::ClosedNodePorts, of.family),
        Element::ClusterIp(address) => (Lookup::ClusterIps, Family::of(*address)),
        Element::Hairpin(address) => (Lookup::Hairpins, Family::of(*address)),
    }
}

/// A key is enough to delete; more does no harm.
fn element(step: &Step) -> Option<nft::Element> {
    Some(match step {
        Step::Add(element, value) => with_value(nft::Element::new(key(element)), value),
        Step::Delete(element, _) => nft::Element::new(key(element)),
        Step::AddTarget {
            list,
            place,
            target,
        } => nft::Element::new(numbers(list.0, [Datum::Number(*place)])).to(socket(target)),
        Step::DeleteTarget { list, place, .. } => {
            nft::Element::new(numbers(list.0, [Datum::Number(*place)]))
        }
        Step::AddMember(list, target) | Step::DeleteMember(list, target) => {
            nft::Element::new(numbers(list.0, socket(target)))
        }
        Step::AddChain(_) | Step::SetRules(..) | Step::DeleteChain(_) => return None,
    })
}

fn numbers(number: u64, rest: impl IntoIterator<Item = Datum>) -> Vec<Datum> {
    let mut key: Vec<_> = halves(number).map(Datum::Number).into();
    key.extend(rest);
    key
}

fn socket(target: &Target) -> [Datum; 2] {
    [target.address.into(), Datum::Port(target.port)]
}

fn key(element: &Element) -> Vec<Datum> {
    let frontend = |of: &Frontend| {
        let protocol = Datum::Protocol(of.protocol.number());
        vec![of.address.into(), protocol, Datum::Port(of.port)]
    };
    let node_port = |of: &NodePort| {
        let protocol = Datum::Protocol(of.protocol.number());
        vec![protocol, Datum::Port(of.port)]
    };
    match element {
        Element::Frontend(of) | Element::Closed(of) | Element::Guarded(of) => frontend(of),
        Element::NodePort(of) | Element::ClosedNodePort(of) => node_port(of),
        Element::ClusterIp(address) => vec![(*address).into()],
        Element::Hairpin(address) => vec![(*address).into(), (*address).into()],
    }
}

fn with_value(element: nft::Element, value: &Value) -> nft::Element {
    match value {
        Value::Goto(chain) => element.verdict(Verdict::Goto(chain.to_string())),
        Value::Reject => element.verdict(Verdict::Goto(REJECT.to_owned())),
        Value::Drop => element.verdict(Verdict::Drop),
        Value::Nothing => element,
    }
}

fn add_step(batch: &mut Batch, step: &Step) {
    match step {
        Step::AddChain(chain) => batch.add_chain(&Chain::plain(&**chain)),
        Step::DeleteChain(chain) => batch.delete_chain(chain),
        Step::SetRules(chain, rules) => {
            batch.flush_chain(chain);
            for rule in rules {
                batch.add_rule(&of_service(chain, rule));
            }
        }
        _ => {}
    }
}

fn of_service(chain: &str, step: &Rule) -> nft::Rule {
    let rule = rule(chain);
    let from = |address: IpAddr| Field::Source(Family::of(address));
    let local = |rule: nft::Rule| rule.is(Field::SourceType, Datum::Number(FIB_LOCAL));
    match step {
        Rule::Balance(balance) => to_target(choose(rule, balance), balance.family),
        Rule::Keep { balance, sticky } => {
            let affinity = Lookup::Affinity.name(balance.family);
            let rule = rule.find_target(client(sticky, balance.family), &affinity);
            let rule = still_of(rule, balance);
            to_target(remember(rule, sticky, balance.family), balance.family)
        }
        Rule::Forget { family, sticky } => {
            rule.forget(client(sticky, *family), &Lookup::Affinity.name(*family))
        }
        Rule::BalanceAndKeep { balance, sticky } => {
            let rule = remember(choose(rule, balance), sticky, balance.family);
            to_target(rule, balance.family)
        }
        Rule::Masquerade => mark(rule),
        Rule::MasqueradeLocal => mark(local(rule)),
        Rule::Goto(chain) => rule.goto(&**chain),
        Rule::GotoIfFrom(cidr, chain) => rule
            .in_network(from(cidr.base()), Test::Is, cidr.base(), cidr.prefix_length)
            .goto(&**chain),
        Rule::GotoIfLocal(chain) => local(rule).goto(&**chain),
        Rule::ReturnIfFrom(cidr) => rule
            .in_network(from(cidr.base()), Test::Is, cidr.base(), cidr.prefix_length)
            .verdict(&Verdict::Return),
        Rule::Drop => rule.drop(),
    }
}

fn still_of(rule: nft::Rule, balance: &Balance) -> nft::Rule {
    let [high, low] = constants(balance.list.0);
    let family = balance.family;
    let key = [
        high,
        low,
        Part::TargetAddress(family),
        Part::TargetPort(family),
    ];
    rule.in_set(key, &Lookup::Members.name(family))
}

fn choose(rule: nft::Rule, balance: &Balance) -> nft::Rule {
    let [high, low] = constants(balance.list.0);
    let chance = Part::Random {
        modulus: balance.count,
        offset: 0,
    };
    let key = [high, low, chance];
    rule.find_target(key, &Lookup::Endpoints.name(balance.family))
}

fn client(sticky: &Sticky, family: Family) -> [Part; 3] {
    let [high, low] = constants(sticky.id.0);
    [high, low, Field::Source(family).into()]
}

fn constants(number: u64) -> [Part; 2] {
    halves(number).map(|half| Part::Constant(Datum::Number(half)))
}

fn remember(rule: nft::Rule, sticky: &Sticky, family: Family) -> nft::Rule {
    let what = Remember {
        with_target: true,
        timeout: Some(Duration::from_secs(sticky.seconds.into())),
    };
    let affinity = Lookup::Affinity.name(family);
    rule.remember(client(sticky, family), &affinity, what)
}

fn to_target(rule: nft::Rule, family: Family) -> nft::Rule {
    rule.dnat_to_target(nft::Target::Socket(family), Nat::default())
}

#[cfg(test)]
mod measure;
#[cfg(test)]
pub mod tests;
