//! The names that the server's certificate answers to.

use rcgen::SanType;
use std::net::IpAddr;

/// Names of the API inside the cluster, as kubeadm lists them.
const IN_CLUSTER: &[&str] = &[
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
];

/// What the operator's settings say about names.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// The addresses it listens on and is advertised by.
    pub addresses: Vec<IpAddr>,
    /// `--tls-san`: names and addresses.
    pub extra: Vec<String>,
    /// `--service-cidr`: its first address is the `kubernetes` Service.
    pub service_cidr: String,
}

impl ServerNames {
    /// Each once. An extra name that no certificate can carry is left out and logged.
    pub fn alternative_names(&self) -> Vec<SanType> {
        let mut names: Vec<SanType> = Vec::new();
        let mut add = |name: SanType| {
            if !names.contains(&name) {
                names.push(name);
            }
        };
        for text in IN_CLUSTER
            .iter()
            .copied()
            .chain(self.extra.iter().map(String::as_str))
        {
            match san(text) {
                Some(name) => add(name),
                None => tracing::warn!(name = text, "not a name that a certificate can carry"),
            }
        }
        let loopback = [
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]),
        ];
        let services = self.service_cidr.split(',');
        let service = services.filter_map(first_service_address);
        for address in loopback
            .into_iter()
            .chain(service)
            .chain(self.addresses.iter().copied())
        {
            if !address.is_unspecified() {
                add(SanType::IpAddress(address));
            }
        }
        names
    }

    /// The same as text.
    pub fn texts(&self) -> Vec<String> {
        let names = self.alternative_names().into_iter();
        names
            .filter_map(|name| match name {
                SanType::DnsName(name) => Some(name.as_str().to_owned()),
                SanType::IpAddress(address) => Some(address.to_string()),
                _ => None,
            })
            .collect()
    }
}

fn san(text: &str) -> Option<SanType> {
    if let Ok(address) = text.parse() {
        return Some(SanType::IpAddress(address));
    }
    text.to_owned().try_into().ok().map(SanType::DnsName)
}

/// The network's address plus one: 10.43.0.1 of 10.43.0.0/16.
pub fn first_service_address(cidr: &str) -> Option<IpAddr> {
    let (address, bits) = cidr.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32u32.checked_sub(bits)?).unwrap_or(0);
            let first = (u32::from(v4) & mask).checked_add(1)?;
            Some(IpAddr::from(first.to_be_bytes()))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX
                .checked_shl(128u32.checked_sub(bits)?)
                .unwrap_or(0);
            let first = (u128::from(v6) & mask).checked_add(1)?;
            Some(IpAddr::from(first.to_be_bytes()))
        }
    }
}
