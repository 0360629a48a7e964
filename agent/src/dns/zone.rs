//! Answers of the cluster's domain and of the addresses in it, from the view alone. Pure.
//!
//! What the DNS specification of Kubernetes (1.1.0) says, and CoreDNS's `kubernetes` plugin where
//! that is silent, but for this: the name of the version exists for every type.

use super::asked::{Asked, Domain, Place, ServiceName, undashed};
use super::targets::{Target, hosts, targets};
use crate::network::view::{self, Entry, Origin, Service, ServiceKind, View};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Short: what it costs is asked of the node itself, and a change is seen.
pub const TTL: u32 = 5;
const VERSION: &str = "1.1.0";
const VERSION_TTL: u32 = 28800;
/// ExternalNames that lead to each other end here.
const ALIASES_MAX: usize = 8;
/// The Service that answers are asked of.
pub const DNS_SERVICE: &str = "kube-system/kube-dns";

#[derive(Debug)]
pub struct Zone {
    domain: Domain,
    view: View,
    serial: u32,
    /// Turns the order of answers, so that clients that take the first spread.
    turn: AtomicUsize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Not of this cluster.
    Elsewhere,
    Records {
        answers: Vec<Record>,
        additionals: Vec<Record>,
    },
    /// The name is there, but nothing of this type.
    NoData,
    NoName,
    Refused,
    /// Nothing was heard of the cluster yet.
    Unknown,
    /// `answers` lead to a name of others, which is to be asked for.
    Alias {
        answers: Vec<Record>,
        target: Name,
    },
}

fn records(answers: Vec<Record>) -> Found {
    if answers.is_empty() {
        return Found::NoData;
    }
    Found::Records {
        answers,
        additionals: Vec::new(),
    }
}

impl Zone {
    /// `serial` is any number that rises from start to start.
    pub fn new(domain: Domain, view: View, serial: u32) -> Self {
        Self {
            domain,
            view,
            serial,
            turn: AtomicUsize::new(0),
        }
    }

    /// `name` stands in the answer as it was asked.
    pub fn find(&self, name: &Name, kind: RecordType) -> Found {
        self.follow(name, kind, Vec::new())
    }

    /// For what is not there.
    pub fn authority(&self) -> Record {
        Record::from_rdata(self.domain.name.clone(), TTL, RData::SOA(self.soa()))
    }

    fn soa(&self) -> SOA {
        let below = |labels: &[&str]| self.domain.below(labels).unwrap_or_default();
        SOA::new(
            below(&["ns", "dns"]),
            below(&["hostmaster"]),
            self.serial,
            7200,
            1800,
            86400,
            TTL,
        )
    }

    fn follow(&self, name: &Name, kind: RecordType, before: Vec<Record>) -> Found {
        let labels = match self.domain.place(name) {
            Place::Cluster(labels) => labels,
            Place::Reverse(address) if kind == RecordType::PTR => {
                return self.pointers(name, address);
            }
            Place::Reverse(_) | Place::Elsewhere if before.is_empty() => return Found::Elsewhere,
            Place::Reverse(_) | Place::Elsewhere => {
                return Found::Alias {
                    answers: before,
                    target: name.clone(),
                };
            }
        };
        if matches!(kind, RecordType::AXFR | RecordType::IXFR) {
            return Found::Refused;
        }
        let found = match labels.asked() {
            Asked::Apex => self.apex(name, kind),
            Asked::Group => Found::NoData,
            Asked::Version if kind == RecordType::TXT => {
                let text = RData::TXT(TXT::new(vec![VERSION.to_owned()]));
                records(vec![Record::from_rdata(name.clone(), VERSION_TTL, text)])
            }
            Asked::Version => Found::NoData,
            Asked::NameServer => self.name_server(name, kind),
            Asked::Namespace(namespace) => self.in_namespace(namespace, || Found::NoData),
            Asked::Pod {
                namespace,
                name: pod,
            } => self.in_namespace(namespace, || {
                undashed(pod).map_or(Found::NoName, |address| {
                    records(address_record(name, kind, address).into_iter().collect())
                })
            }),
            Asked::Service(asked) => return self.service(name, kind, asked, before),
            Asked::Nothing => Found::NoName,
        };
        with(before, self.sure(found))
    }

    /// Of what is not known yet nobody can say that it is not there.
    fn sure(&self, found: Found) -> Found {
        if found == Found::NoName && self.view.origin() == Origin::Nothing {
            return Found::Unknown;
        }
        found
    }

    fn in_namespace(&self, namespace: &str, found: impl FnOnce() -> Found) -> Found {
        if self.view.has_namespace(namespace) {
            found()
        } else {
            Found::NoName
        }
    }

    fn apex(&self, name: &Name, kind: RecordType) -> Found {
        let data = match kind {
            RecordType::SOA => RData::SOA(self.soa()),
            RecordType::NS => match self.domain.below(&["ns", "dns"]) {
                Some(server) => RData::NS(NS(server)),
                None => return Found::NoData,
            },
            _ => return Found::NoData,
        };
        let additionals = match &data {
            RData::NS(NS(server)) => {
                let addresses = self.server_addresses();
                let all = addresses.iter();
                all.map(|address| of_address(server, *address)).collect()
            }
            _ => Vec::new(),
        };
        Found::Records {
            answers: vec![Record::from_rdata(name.clone(), TTL, data)],
            additionals,
        }
    }

    fn server_addresses(&self) -> Vec<IpAddr> {
        let read = |entry: &Entry| {
            let service = entry.service.as_ref();
            service.map(|service| service.cluster_ips.to_vec())
        };
        self.view
            .read(DNS_SERVICE, read)
            .flatten()
            .unwrap_or_default()
    }

    fn name_server(&self, name: &Name, kind: RecordType) -> Found {
        let addresses = self.server_addresses();
        let of = addresses.iter();
        records(
            of.filter_map(|address| address_record(name, kind, *address))
                .collect(),
        )
    }

    fn service(
        &self,
        name: &Name,
        kind: RecordType,
        asked: ServiceName<'_>,
        before: Vec<Record>,
    ) -> Found {
        let key = format!("{}/{}", asked.namespace, asked.service);
        let found = self.view.read(&key, |entry| {
            let service = entry.service.as_deref()?;
            match service.kind {
                ServiceKind::ExternalName => alias(service, &asked, name).map(Err),
                _ => self.of_entry(service, entry, name, kind, &asked).map(Ok),
            }
        });
        let target = match found.flatten() {
            None => return self.sure(Found::NoName),
            Some(Ok(found)) => return with(before, found),
            Some(Err(record)) => record,
        };
        match kind {
            RecordType::CNAME => with(before, records(vec![target])),
            RecordType::A | RecordType::AAAA if before.len() < ALIASES_MAX => {
                let RData::CNAME(CNAME(next)) = &target.data else {
                    return Found::NoData;
                };
                let next = next.clone();
                let mut chain = before;
                chain.push(target);
                match self.follow(&next, kind, chain) {
                    // CoreDNS says no more of a chain that ends nowhere in the cluster.
                    Found::NoName => Found::NoData,
                    found => found,
                }
            }
            _ => Found::NoData,
        }
    }

    /// None when no such Service, endpoint or port is there.
    fn of_entry(
        &self,
        service: &Service,
        entry: &Entry,
        name: &Name,
        kind: RecordType,
        asked: &ServiceName<'_>,
    ) -> Option<Found> {
        let targets = targets(service, entry, asked, kind == RecordType::SRV)?;
        Some(match kind {
            RecordType::SRV => self.servers(name, asked, &targets),
            RecordType::A | RecordType::AAAA => self.addresses(name, kind, &targets),
            _ => Found::NoData,
        })
    }

    fn addresses(&self, name: &Name, kind: RecordType, targets: &[Target<'_>]) -> Found {
        let mut seen = HashSet::with_capacity(targets.len());
        let once = targets.iter().filter(|target| seen.insert(target.address));
        let answers = once.filter_map(|target| address_record(name, kind, target.address));
        let mut answers: Vec<_> = answers.collect();
        if answers.len() > 1 {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let turn = turn % answers.len();
            answers.rotate_left(turn);
        }
        records(answers)
    }

    fn servers(&self, name: &Name, asked: &ServiceName<'_>, targets: &[Target<'_>]) -> Found {
        let weight = u16::try_from(100 / targets.len().max(1))
            .unwrap_or(1)
            .max(1);
        let (mut answers, mut additionals) = (Vec::new(), Vec::new());
        let (mut named, mut addressed) = (HashSet::new(), HashSet::new());
        for target in targets {
            let Some(port) = target.port else { continue };
            let of_service = [asked.service, asked.namespace, "svc"];
            let below = match target.host() {
                Some(host) => {
                    let labels = [&[host.as_str()][..], &of_service].concat();
                    self.domain.below(&labels)
                }
                None => self.domain.below(&of_service),
            };
            let Some(below) = below else { continue };
            if named.insert((below.clone(), port)) {
                let server = RData::SRV(SRV::new(0, weight, port, below.clone()));
                answers.push(Record::from_rdata(name.clone(), TTL, server));
            }
            if addressed.insert((below.clone(), target.address)) {
                additionals.push(of_address(&below, target.address));
            }
        }
        match records(answers) {
            Found::Records { answers, .. } => Found::Records {
                answers,
                additionals,
            },
            found => found,
        }
    }

    /// Names of a cluster IP, or of the endpoints that have the address.
    fn pointers(&self, name: &Name, address: IpAddr) -> Found {
        let mut names = Vec::new();
        if let Some(key) = self.view.service_at(address) {
            let (namespace, service) = view::parts(&key);
            names.extend(self.domain.below(&[service, namespace, "svc"]));
        } else {
            for key in self.view.services_of_endpoint(address) {
                let (namespace, service) = view::parts(&key);
                let hosts = self.view.read(&key, |entry| hosts(entry, address));
                for host in hosts.unwrap_or_default() {
                    let below = self.domain.below(&[&host, service, namespace, "svc"]);
                    names.extend(below.filter(|below| !names.contains(below)));
                }
            }
        }
        if names.is_empty() {
            return Found::Elsewhere;
        }
        let pointer = |to| Record::from_rdata(name.clone(), TTL, RData::PTR(PTR(to)));
        records(names.into_iter().map(pointer).collect())
    }
}

fn with(mut before: Vec<Record>, found: Found) -> Found {
    match found {
        Found::Records {
            answers,
            additionals,
        } => {
            before.extend(answers);
            Found::Records {
                answers: before,
                additionals,
            }
        }
        found => found,
    }
}

/// An ExternalName has no endpoints and no ports, and an address is no name.
fn alias(service: &Service, asked: &ServiceName<'_>, name: &Name) -> Option<Record> {
    let is_whole = asked.endpoint.is_none() && asked.port.is_empty() && asked.protocol.is_empty();
    let target = service.external_name.as_deref().filter(|_| is_whole)?;
    if target.parse::<IpAddr>().is_ok() {
        return None;
    }
    let mut target = Name::from_ascii(target).ok()?;
    target.set_fqdn(true);
    let data = RData::CNAME(CNAME(target));
    Some(Record::from_rdata(name.clone(), TTL, data))
}

fn address_record(name: &Name, kind: RecordType, address: IpAddr) -> Option<Record> {
    let is_asked = match kind {
        RecordType::A => address.is_ipv4(),
        RecordType::AAAA => address.is_ipv6(),
        _ => false,
    };
    is_asked.then(|| of_address(name, address))
}

fn of_address(name: &Name, address: IpAddr) -> Record {
    let data = match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    Record::from_rdata(name.clone(), TTL, data)
}

#[cfg(test)]
mod tests;
