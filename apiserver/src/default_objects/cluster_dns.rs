//! The Service `kube-system/kube-dns`: where pods ask for names.
//!
//! Every node answers on its addresses itself. So there are no pods behind it, and its label says
//! to whatever routes Services that this one is not theirs to route.

use super::{Wanted, ensure, following};
use crate::allocate;
use crate::server::InProcess;
use serde_json::{Value, json};
use std::net::IpAddr;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterDns {
    /// At most one a family. Empty: the tenth of each network of Services.
    pub addresses: Vec<IpAddr>,
    /// Names of Services end in it: `cluster.local`.
    pub domain: String,
}

const COLLECTION: &str = "/api/v1/namespaces/kube-system/services";

/// A cluster without names is better than none: what cannot be made is told.
pub async fn reconcile(api: &InProcess, dns: &ClusterDns, service_cidr: &str) {
    let service = service(addresses(dns, service_cidr), &dns.domain);
    if let Err(error) = ensure(api, service).await {
        let error = error.source;
        tracing::warn!(%error, "names are not answered at this address: --cluster-dns takes another");
    }
}

fn addresses(dns: &ClusterDns, service_cidr: &str) -> Vec<IpAddr> {
    if !dns.addresses.is_empty() {
        return dns.addresses.clone();
    }
    let ranges = allocate::ranges(service_cidr).unwrap_or_default();
    ranges.iter().map(allocate::Range::dns).collect()
}

fn service(addresses: Vec<IpAddr>, domain: &str) -> Wanted {
    let families: Vec<Value> = addresses
        .iter()
        .map(|address| if address.is_ipv4() { "IPv4" } else { "IPv6" }.into())
        .collect();
    let policy = if families.len() == 2 {
        "RequireDualStack"
    } else {
        "SingleStack"
    };
    let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kube-dns", "namespace": "kube-system",
            "labels": {
                "k8s-app": "kube-dns",
                "kubernetes.io/cluster-service": "true",
                "kubernetes.io/name": "CoreDNS",
                "service.kubernetes.io/service-proxy-name": "coracle-dns",
            },
            "annotations": { "dns.coracle/cluster-domain": domain },
        },
        "spec": {
            "type": "ClusterIP", "sessionAffinity": "None",
            "clusterIP": texts.first().cloned().unwrap_or_default(),
            "clusterIPs": texts,
            "ipFamilies": families, "ipFamilyPolicy": policy,
            "ports": [
                { "name": "dns", "protocol": "UDP", "port": 53, "targetPort": 53 },
                { "name": "dns-tcp", "protocol": "TCP", "port": 53, "targetPort": 53 },
            ],
        },
    });
    Wanted {
        fixed: &[&["spec", "clusterIPs"]],
        ..following(
            COLLECTION,
            &[
                &[
                    "metadata",
                    "labels",
                    "service.kubernetes.io/service-proxy-name",
                ],
                &["metadata", "annotations", "dns.coracle/cluster-domain"],
            ],
            object,
        )
    }
}
