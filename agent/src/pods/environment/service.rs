//! The variables by which a pod finds services: `KUBERNETES_SERVICE_HOST` and the docker links.

use crate::network::view::{self, Key, Service, ServicePort};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The Service whose variables every pod has.
pub const MASTER: &str = "default/kubernetes";

/// Always those of `default/kubernetes`; with `links` those of the pod's namespace over them.
pub fn variables(
    services: &[(Key, Arc<Service>)],
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let master = services.iter().filter(|(key, _)| &**key == MASTER);
    let own = services
        .iter()
        .filter(|(key, _)| links && view::parts(key).0 == namespace);
    let mut made = BTreeMap::new();
    for (key, service) in master.chain(own) {
        add(view::parts(key).1, service, &mut made);
    }
    made
}

fn add(name: &str, service: &Service, made: &mut BTreeMap<String, String>) -> Option<()> {
    let ip = *service.cluster_ips.first()?;
    let first = service.ports.first()?;
    let name = variable(name);
    made.insert(format!("{name}_SERVICE_HOST"), ip.to_string());
    made.insert(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
        let key = format!("{name}_SERVICE_PORT_{}", variable(&port.name));
        made.insert(key, port.port.to_string());
    }
    made.insert(format!("{name}_PORT"), url(ip, first));
    for port in &service.ports {
        let protocol = port.protocol.lower();
        let prefix = format!("{name}_PORT_{}_{}", port.port, protocol.to_uppercase());
        made.insert(prefix.clone(), url(ip, port));
        made.insert(format!("{prefix}_PROTO"), protocol.to_owned());
        made.insert(format!("{prefix}_PORT"), port.port.to_string());
        made.insert(format!("{prefix}_ADDR"), ip.to_string());
    }
    Some(())
}

fn url(ip: IpAddr, port: &ServicePort) -> String {
    let host = match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("{}://{host}:{}", port.protocol.lower(), port.port)
}

fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
