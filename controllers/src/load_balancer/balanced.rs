//! What is kept of a Service of type LoadBalancer.

use coracle_client::{ObjectKey, key_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use std::net::IpAddr;

#[derive(Clone, Debug, Default)]
pub struct Known {
    pub services: BTreeMap<ObjectKey, Balanced>,
    /// Where the API server listens on its node: what the Service `default/kubernetes` leads to.
    pub server_port: Option<i32>,
}

/// The Service that leads to the API server.
pub fn server() -> ObjectKey {
    ObjectKey::new("default", "kubernetes")
}

impl Known {
    /// True when something is another than before.
    pub fn set(&mut self, service: &Service) -> bool {
        let key = key_of(service);
        if key == server() {
            let port = server_port(service);
            return std::mem::replace(&mut self.server_port, port) != port;
        }
        let of = Balanced::of(service);
        let before = match of.clone() {
            Some(of) => self.services.insert(key, of),
            None => self.services.remove(&key),
        };
        before != of
    }

    /// What was written need not be written again before it is told of. One that has gone
    /// meanwhile does not come back.
    pub fn written(&mut self, service: &Service) {
        let known = self.services.get(&key_of(service));
        if known.is_some_and(|known| Some(&known.uid) == service.metadata.uid.as_ref()) {
            self.set(service);
        }
    }

    pub fn remove(&mut self, service: &Service) -> bool {
        self.services.remove(&key_of(service)).is_some()
    }
}

fn server_port(service: &Service) -> Option<i32> {
    let ports = service.spec.as_ref()?.ports.as_ref()?;
    match ports.first()?.target_port {
        Some(IntOrString::Int(port)) => Some(port),
        _ => None,
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Balanced {
    pub uid: String,
    pub created: Option<Timestamp>,
    /// Protocol and port.
    pub ports: Vec<(String, i32)>,
    pub wants_ipv4: bool,
    pub wants_ipv6: bool,
    /// `externalTrafficPolicy: Local`: nodes without an endpoint of it answer nobody.
    pub is_local: bool,
    /// `spec.loadBalancerIP`.
    pub asked: Option<IpAddr>,
    /// In its status.
    pub addresses: Vec<IpAddr>,
}

impl Balanced {
    /// None for one of another type, and for one whose class says that it is another's matter.
    pub fn of(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let is_ours = spec.type_.as_deref() == Some("LoadBalancer")
            && spec.load_balancer_class.is_none()
            && service.metadata.deletion_timestamp.is_none();
        if !is_ours {
            return None;
        }
        let families = spec.ip_families.iter().flatten();
        let has = |family: &str| families.clone().any(|of| of == family);
        let ports = spec.ports.iter().flatten();
        let status = service.status.as_ref();
        let balancer = status.and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref());
        let addresses = ingress.into_iter().flatten();
        let addresses = addresses.filter_map(|ingress| ingress.ip.as_ref()?.parse().ok());
        let created = service.metadata.creation_timestamp.as_ref();
        let protocol = |text: Option<&String>| text.cloned().unwrap_or_else(|| "TCP".to_owned());
        Some(Self {
            uid: service.metadata.uid.clone().unwrap_or_default(),
            created: created.map(|time| time.0),
            ports: ports
                .map(|port| (protocol(port.protocol.as_ref()), port.port))
                .collect(),
            wants_ipv4: has("IPv4"),
            wants_ipv6: has("IPv6"),
            is_local: spec.external_traffic_policy.as_deref() == Some("Local"),
            asked: spec
                .load_balancer_ip
                .as_ref()
                .and_then(|text| text.parse().ok()),
            addresses: addresses.collect(),
        })
    }

    pub fn wants(&self, address: IpAddr) -> bool {
        if address.is_ipv4() {
            self.wants_ipv4
        } else {
            self.wants_ipv6
        }
    }
}
