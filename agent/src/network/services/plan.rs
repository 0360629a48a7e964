//! What the kernel is to have for one Service. Pure; which way leads where is as upstream's
//! kube-proxy has it.
//!
//! A port of a Service has up to four chains a family: `c` chooses among the endpoints of the
//! policy `Cluster`, `l` among those of the policy `Local`, `e` is where traffic from outside
//! enters, and `f` is asked whether a client may use the load balancer's address.

use super::node::Node;
use super::steps::{
    self, AffinityId, Balance, Chain, Element, Family, Frontend, ListId, NodePort, Rule, Sticky,
    Target, Value,
};
use super::usable::{self, Candidates, Policies, Usable};
use crate::network::subnet::Subnet;
use crate::network::view::{Entry, Key, Protocol, Service, ServiceKind, ServicePort};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// In order.
    pub ports: Box<[Port]>,
    /// In order: a map would take several times the memory.
    elements: Box<[(Element, Value)]>,
}

impl Plan {
    pub fn elements(&self) -> impl Iterator<Item = (&Element, &Value)> {
        self.elements
            .iter()
            .map(|(element, value)| (element, value))
    }

    pub fn value(&self, element: &Element) -> Option<&Value> {
        let place = self.elements.binary_search_by(|(of, _)| of.cmp(element));
        Some(&self.elements[place.ok()?].1)
    }

    /// Whether it is about no cluster IP of the Service.
    pub fn is_foreign(&self, element: &Element) -> bool {
        let own = element.address().map(Element::ClusterIp);
        own.is_none_or(|own| self.value(&own).is_none())
    }
}

/// Of one family.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Port {
    pub id: PortId,
    pub cluster: List,
    pub local: List,
    pub affinity_seconds: Option<u32>,
    /// Of the chain `e`; none for no chain.
    pub external: Vec<Rule>,
    /// Of the chain `f`; none for no chain.
    pub guard: Vec<Rule>,
}

/// Of a port among those of its Service.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PortId {
    pub family: Family,
    pub protocol: Protocol,
    pub name: Box<str>,
}

/// Endpoints by their places. A plan has them in order; what stands in the kernel keeps its places.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct List {
    pub id: ListId,
    pub targets: Vec<Target>,
}

impl List {
    /// Fits: no machine has memory for more.
    pub fn count(&self) -> u32 {
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChainKind {
    Cluster,
    Local,
    External,
    Guard,
}

/// Before the names of all chains of Services; what else is in the table is not ours.
pub const CHAIN_PREFIX: &str = "svc-";

impl PortId {
    fn of(family: Family, port: &ServicePort) -> Self {
        Self {
            family,
            protocol: port.protocol,
            name: port.name.clone(),
        }
    }

    /// At most 170 of the 255 bytes that a name may have.
    pub fn chain(&self, service: &str, kind: ChainKind) -> Chain {
        let letter = match kind {
            ChainKind::Cluster => 'c',
            ChainKind::Local => 'l',
            ChainKind::External => 'e',
            ChainKind::Guard => 'f',
        };
        format!("{CHAIN_PREFIX}{letter}{}", self.path(service)).into()
    }

    fn path(&self, service: &str) -> String {
        let (digit, protocol) = (steps::digit(self.family), self.protocol.lower());
        format!("{digit}/{service}/{protocol}/{}", self.name)
    }

    fn list(&self, service: &str, kind: ChainKind) -> ListId {
        ListId(number(&self.chain(service, kind)))
    }

    pub fn affinity(&self, service: &str) -> AffinityId {
        AffinityId(number(&self.path(service)))
    }
}

/// The same after each restart. Wide enough that no two are ever the same.
fn number(of: &str) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, of.as_bytes());
    let first = digest.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
    u64::from_be_bytes(*first)
}

impl Port {
    /// The rules of each chain that the port has.
    pub fn chains(&self, service: &str) -> Vec<(Chain, Vec<Rule>)> {
        let mut chains = Vec::new();
        for (kind, list) in [
            (ChainKind::Cluster, &self.cluster),
            (ChainKind::Local, &self.local),
        ] {
            if !list.targets.is_empty() {
                chains.push((self.id.chain(service, kind), self.choice(service, list)));
            }
        }
        for (kind, rules) in [
            (ChainKind::External, &self.external),
            (ChainKind::Guard, &self.guard),
        ] {
            if !rules.is_empty() {
                chains.push((self.id.chain(service, kind), rules.clone()));
            }
        }
        chains
    }

    fn choice(&self, service: &str, list: &List) -> Vec<Rule> {
        let family = self.id.family;
        let balance = Balance {
            family,
            list: list.id,
            count: list.count(),
        };
        let Some(seconds) = self.affinity_seconds else {
            return vec![Rule::Balance(balance)];
        };
        let id = self.id.affinity(service);
        let sticky = Sticky { id, seconds };
        vec![
            Rule::Keep { balance, sticky },
            Rule::Forget { family, sticky },
            Rule::BalanceAndKeep { balance, sticky },
            Rule::Balance(balance),
        ]
    }
}

/// Nothing of a Service that is not routed.
pub fn plan(key: &Key, entry: &Entry, node: &Node) -> Plan {
    let Some(service) = entry
        .service
        .as_deref()
        .filter(|service| is_routed(service))
    else {
        return Plan::default();
    };
    let (mut ports, mut elements) = (Vec::new(), BTreeMap::new());
    for cluster_ip in &service.cluster_ips {
        let family = Family::of(*cluster_ip);
        for port in &service.ports {
            let candidates = usable::candidates(entry, family, port);
            let mut planner = Planner {
                key,
                service,
                node,
                port,
                id: PortId::of(family, port),
                cluster_ip: *cluster_ip,
                ways: Ways::of(service, family, port),
                elements: &mut elements,
            };
            ports.push(planner.plan(&candidates));
        }
    }
    ports.sort_by(|one, other| one.id.cmp(&other.id));
    Plan {
        ports: ports.into(),
        elements: elements.into_iter().collect(),
    }
}

pub fn is_routed(service: &Service) -> bool {
    let is_addressed = !service.is_headless && !service.cluster_ips.is_empty();
    is_addressed && service.kind != ServiceKind::ExternalName && !service.is_routed_by_others
}

/// How a port is reached from outside the cluster.
struct Ways {
    external_ips: Vec<IpAddr>,
    load_balancer_ips: Vec<IpAddr>,
    node_port: u16,
}

impl Ways {
    fn of(service: &Service, family: Family, port: &ServicePort) -> Self {
        let of_family = |addresses: &[IpAddr]| {
            let all = addresses.iter().copied();
            all.filter(|address| Family::of(*address) == family)
                .collect::<Vec<_>>()
        };
        Self {
            external_ips: of_family(&service.external_ips),
            load_balancer_ips: of_family(&service.load_balancer_ips),
            node_port: port.node_port,
        }
    }

    fn are_any(&self) -> bool {
        self.node_port != 0 || !self.external_ips.is_empty() || !self.load_balancer_ips.is_empty()
    }
}

/// One port, of one family.
struct Planner<'a> {
    key: &'a Key,
    service: &'a Service,
    node: &'a Node,
    port: &'a ServicePort,
    id: PortId,
    cluster_ip: IpAddr,
    ways: Ways,
    elements: &'a mut BTreeMap<Element, Value>,
}

impl Planner<'_> {
    fn plan(&mut self, candidates: &Candidates<'_>) -> Port {
        let is_external = self.ways.are_any();
        let policies = Policies {
            cluster: !self.service.is_internal_local || is_external,
            local: self.service.is_internal_local
                || (self.service.is_external_local && is_external),
        };
        let usable = usable::usable(candidates, policies, self.node);
        self.hairpins(candidates, &usable);
        self.internal(&usable);
        let external = self.external(&usable);
        let guard = self.guard();
        let list = |targets: Vec<Target>, kind| List {
            id: self.id.list(self.key, kind),
            targets,
        };
        Port {
            cluster: list(usable.cluster, ChainKind::Cluster),
            local: list(usable.local, ChainKind::Local),
            affinity_seconds: self.service.affinity_seconds,
            external,
            guard,
            id: self.id.clone(),
        }
    }

    fn hairpins(&mut self, candidates: &Candidates<'_>, usable: &Usable) {
        for target in usable.cluster.iter().chain(&usable.local) {
            if candidates.get(target).is_some_and(|of| self.node.has(of)) {
                self.add(Element::Hairpin(target.address), Value::Nothing);
            }
        }
    }

    fn internal(&mut self, usable: &Usable) {
        self.add(Element::ClusterIp(self.cluster_ip), Value::Nothing);
        let frontend = self.frontend(self.cluster_ip);
        let is_local = self.service.is_internal_local;
        match self.closed(usable, is_local) {
            None => {
                let chain = self.policy_chain(is_local);
                self.add(Element::Frontend(frontend), Value::Goto(chain));
            }
            Some(verdict) => self.add(Element::Closed(frontend), verdict),
        }
    }

    /// Why nothing answers under a policy: no endpoint anywhere, or none on this node.
    fn closed(&self, usable: &Usable, is_local: bool) -> Option<Value> {
        if !usable.has_any {
            return Some(Value::Reject);
        }
        (is_local && usable.local.is_empty()).then_some(Value::Drop)
    }

    fn policy_chain(&self, is_local: bool) -> Chain {
        let kind = if is_local {
            ChainKind::Local
        } else {
            ChainKind::Cluster
        };
        self.id.chain(self.key, kind)
    }

    /// The ways from outside, and the rules of the chain that they lead to. There is one even
    /// without an endpoint for outside: what comes from the node itself is sent on.
    fn external(&mut self, usable: &Usable) -> Vec<Rule> {
        if !self.ways.are_any() {
            return Vec::new();
        }
        let closed = self.closed(usable, self.service.is_external_local);
        let chain = self.id.chain(self.key, ChainKind::External);
        let addresses = [&self.ways.external_ips[..], &self.ways.load_balancer_ips].concat();
        for address in addresses {
            let frontend = self.frontend(address);
            if usable.has_any {
                self.add(Element::Frontend(frontend), Value::Goto(chain.clone()));
            }
            if let Some(verdict) = &closed {
                self.add(Element::Closed(frontend), verdict.clone());
            }
        }
        if self.ways.node_port != 0 {
            let port = NodePort {
                family: self.id.family,
                protocol: self.port.protocol,
                port: self.ways.node_port,
            };
            if usable.has_any {
                self.add(Element::NodePort(port), Value::Goto(chain));
            }
            if let Some(verdict) = &closed {
                self.add(Element::ClosedNodePort(port), verdict.clone());
            }
        }
        if usable.has_any {
            self.entrance(closed.is_none())
        } else {
            Vec::new()
        }
    }

    fn entrance(&self, is_open: bool) -> Vec<Rule> {
        let is_local = self.service.is_external_local;
        let mut rules = Vec::new();
        if is_local {
            // What comes from the cluster itself goes as if it had been outside and come back.
            let everywhere = self.policy_chain(false);
            let pods = self.node.pod_cidrs.iter();
            let pods = pods.filter(|cidr| Family::of(cidr.base()) == self.id.family);
            rules.extend(pods.map(|cidr| Rule::GotoIfFrom(*cidr, everywhere.clone())));
            rules.push(Rule::MasqueradeLocal);
            rules.push(Rule::GotoIfLocal(everywhere));
        } else {
            // The endpoint may be on another node, and answer to it.
            rules.push(Rule::Masquerade);
        }
        if is_open {
            rules.push(Rule::Goto(self.policy_chain(is_local)));
        }
        rules
    }

    /// Who may use the addresses of the load balancer, and the ways that ask.
    fn guard(&mut self) -> Vec<Rule> {
        let ranges = self.service.source_ranges.iter();
        let ranges: BTreeSet<Subnet> = ranges
            .filter(|range| Family::of(range.base()) == self.id.family)
            .copied()
            .collect();
        let is_open = ranges.is_empty() || ranges.iter().any(|range| range.prefix_length == 0);
        let addresses = self.ways.load_balancer_ips.clone();
        if is_open || addresses.is_empty() {
            return Vec::new();
        }
        let chain = self.id.chain(self.key, ChainKind::Guard);
        for address in &addresses {
            let frontend = self.frontend(*address);
            self.add(Element::Guarded(frontend), Value::Goto(chain.clone()));
        }
        let mut rules: Vec<_> = ranges.iter().copied().map(Rule::ReturnIfFrom).collect();
        // The node itself comes with the balancer's address when that is one of its own.
        let mut own = self.node.addresses.iter();
        if own.any(|address| ranges.iter().any(|range| range.contains(*address))) {
            let alone = addresses.into_iter().map(Subnet::of);
            rules.extend(alone.map(Rule::ReturnIfFrom));
        }
        rules.push(Rule::Drop);
        rules
    }

    fn frontend(&self, address: IpAddr) -> Frontend {
        Frontend {
            address,
            protocol: self.port.protocol,
            port: self.port.port,
        }
    }

    fn add(&mut self, element: Element, value: Value) {
        self.elements.insert(element, value);
    }
}

#[cfg(test)]
mod tests;
