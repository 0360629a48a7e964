//! What a name of the cluster's domain asks for. Pure.
//!
//! The shapes are those of the DNS specification of Kubernetes; where it is silent, CoreDNS's.

use hickory_proto::rr::Name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `_port._protocol.service.namespace.svc`: no longer name means anything.
const LABELS_MAX: usize = 5;

/// Before the domain, in lower case.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Labels(String);

/// What the labels say. None of it has been looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked<'a> {
    /// The domain itself.
    Apex,
    /// `svc` or `pod`, which hold names and are none.
    Group,
    Version,
    /// `ns.dns`: who answers for the domain.
    NameServer,
    Namespace(&'a str),
    Service(ServiceName<'a>),
    /// An address with dashes, and its namespace.
    Pod {
        namespace: &'a str,
        name: &'a str,
    },
    Nothing,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServiceName<'a> {
    pub namespace: &'a str,
    pub service: &'a str,
    /// A host name, or an address with dashes.
    pub endpoint: Option<&'a str>,
    /// Empty is any.
    pub port: &'a str,
    pub protocol: &'a str,
}

/// What a question of the world is about, as far as this cluster is concerned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    Cluster(Labels),
    Reverse(IpAddr),
    Elsewhere,
}

/// The domain of the cluster.
#[derive(Clone, Debug)]
pub struct Domain {
    pub name: Name,
    labels: Vec<Box<[u8]>>,
}

impl Domain {
    /// None when the text is no name.
    pub fn parse(text: &str) -> Option<Self> {
        let mut name = Name::from_ascii(text.trim_end_matches('.'))
            .ok()?
            .to_lowercase();
        name.set_fqdn(true);
        let labels: Vec<_> = name.iter().map(Box::from).collect();
        (!labels.is_empty()).then_some(Self { name, labels })
    }

    pub fn place(&self, name: &Name) -> Place {
        let count = name.iter().count();
        let Some(before) = count.checked_sub(self.labels.len()) else {
            return reverse(name);
        };
        let tail = name.iter().skip(before);
        let is_below = tail
            .zip(&self.labels)
            .all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_below {
            return reverse(name);
        }
        Place::Cluster(Labels::of(name.iter().take(before)))
    }

    /// A name below the domain. None when it would be longer than a name may be.
    pub fn below(&self, labels: &[&str]) -> Option<Name> {
        let labels = labels.iter().map(|label| label.as_bytes());
        Name::from_labels(labels.chain(self.labels.iter().map(AsRef::as_ref))).ok()
    }
}

impl Labels {
    /// What could be no name of an object, by its characters, is one label that is none either.
    fn of<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut text = String::with_capacity(64);
        for label in labels {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
            if !label.iter().all(is_plain) {
                return Self("*".to_owned());
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.extend(label.iter().map(|byte| byte.to_ascii_lowercase() as char));
        }
        Self(text)
    }

    pub fn asked(&self) -> Asked<'_> {
        let mut labels = [""; LABELS_MAX];
        let mut count = 0;
        for label in self.0.split('.') {
            if count == LABELS_MAX {
                return Asked::Nothing;
            }
            labels[count] = label;
            count += 1;
        }
        match labels[..count] {
            [""] => Asked::Apex,
            ["svc" | "pod"] => Asked::Group,
            ["dns-version"] => Asked::Version,
            ["ns", "dns"] => Asked::NameServer,
            [namespace, "svc" | "pod"] => Asked::Namespace(namespace),
            [.., name, namespace, "pod"] => Asked::Pod { namespace, name },
            [ref before @ .., service, namespace, "svc"] => {
                let name = ServiceName {
                    namespace,
                    service,
                    ..ServiceName::default()
                };
                match *before {
                    [] => Asked::Service(name),
                    [endpoint] => Asked::Service(ServiceName {
                        endpoint: Some(endpoint),
                        ..name
                    }),
                    [port, protocol] => Asked::Service(ServiceName {
                        port: port.strip_prefix('_').unwrap_or(port),
                        protocol: protocol.strip_prefix('_').unwrap_or(protocol),
                        ..name
                    }),
                    _ => Asked::Nothing,
                }
            }
            _ => Asked::Nothing,
        }
    }
}

/// A whole address under in-addr.arpa or ip6.arpa; everything else there is of others.
fn reverse(name: &Name) -> Place {
    let is_whole = matches!(name.num_labels(), 6 | 34);
    match name.parse_arpa_name() {
        Ok(net) if is_whole => Place::Reverse(net.addr()),
        _ => Place::Elsewhere,
    }
}

/// `10.42.0.5` as `10-42-0-5`, `fd00::1` as `fd00--1`: how an address is a label.
pub fn dashed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string().replace('.', "-"),
        IpAddr::V6(address) => {
            let mut text = address.to_string().replace(':', "-");
            if text.ends_with('-') {
                text.push('0');
            }
            text
        }
    }
}

pub fn undashed(label: &str) -> Option<IpAddr> {
    let is_v4 = label.matches('-').count() == 3 && !label.contains("--");
    if is_v4 {
        let address = label.replace('-', ".").parse::<Ipv4Addr>().ok()?;
        return Some(address.into());
    }
    let address = label.replace('-', ":").parse::<Ipv6Addr>().ok()?;
    Some(address.into())
}

#[cfg(test)]
mod tests;
