//! The variables by which a pod finds services: `KUBERNETES_SERVICE_HOST` and the docker links.

use k8s_openapi::api::core::v1::{Service, ServicePort};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Always those of `default/kubernetes`; with `links` those of the pod's namespace over them.
pub fn variables(
    services: &[Arc<Service>],
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let is_in =
        |service: &Service, wanted: &str| service.metadata.namespace.as_deref() == Some(wanted);
    let master = services.iter().filter(|service| {
        is_in(service, "default") && service.metadata.name.as_deref() == Some("kubernetes")
    });
    let own = services
        .iter()
        .filter(|service| links && is_in(service, namespace));
    let mut made = BTreeMap::new();
    for service in master.chain(own) {
        add(service, &mut made);
    }
    made
}

fn add(service: &Service, made: &mut BTreeMap<String, String>) -> Option<()> {
    let spec = service.spec.as_ref()?;
    let ip = spec.cluster_ip.as_deref()?;
    if ip.is_empty() || ip == "None" {
        return None;
    }
    let ports = spec.ports.as_deref()?;
    let first = ports.first()?;
    let name = variable(service.metadata.name.as_deref()?);
    made.insert(format!("{name}_SERVICE_HOST"), ip.to_owned());
    made.insert(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in ports {
        let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) else {
            continue;
        };
        let key = format!("{name}_SERVICE_PORT_{}", variable(port_name));
        made.insert(key, port.port.to_string());
    }
    made.insert(format!("{name}_PORT"), url(ip, first));
    for port in ports {
        let protocol = protocol(port);
        let prefix = format!("{name}_PORT_{}_{}", port.port, protocol.to_uppercase());
        made.insert(prefix.clone(), url(ip, port));
        made.insert(format!("{prefix}_PROTO"), protocol);
        made.insert(format!("{prefix}_PORT"), port.port.to_string());
        made.insert(format!("{prefix}_ADDR"), ip.to_owned());
    }
    Some(())
}

fn protocol(port: &ServicePort) -> String {
    port.protocol.as_deref().unwrap_or("TCP").to_lowercase()
}

fn url(ip: &str, port: &ServicePort) -> String {
    let host = if ip.contains(':') {
        format!("[{ip}]")
    } else {
        ip.to_owned()
    };
    format!("{}://{host}:{}", protocol(port), port.port)
}

fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
