//! What a client is warned of that writes a service: fields that count for nothing, or that are
//! about to go.

use super::view::Service as View;
use crate::field::Path;
use crate::json;
use crate::names::{non_standard_ip, non_standard_range};
use crate::object::Object;
use serde_json::Value;

const OLD_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub fn of(service: &Object) -> Vec<String> {
    let view = View::of(service);
    let spec = view.spec;
    let path = Path::root("spec");
    let text = |name: &str| json::text(spec, name);
    let mut all = Vec::new();
    if service.annotation(OLD_HINTS).is_some() {
        all.push(format!(
            "annotation {OLD_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    let is_headless = view.kind() == "ClusterIP" && text("clusterIP") == "None";
    if !matches!(text("clusterIP"), "" | "None") {
        all.extend(addresses(view.cluster_ips(), &path.child("clusterIPs")));
    }
    let external = json::list(spec, "externalIPs");
    if is_headless {
        let ignored = [
            (!text("loadBalancerIP").is_empty(), "spec.loadBalancerIP"),
            (!external.is_empty(), "spec.externalIPs"),
            (text("sessionAffinity") != "None", "spec.SessionAffinity"),
        ];
        let ignored = ignored.into_iter().filter(|(is_set, _)| *is_set);
        all.extend(ignored.map(|(_, field)| format!("{field} is ignored for headless services")));
    }
    all.extend(addresses(external, &path.child("externalIPs")));
    let is_name = view.kind() == "ExternalName";
    if !external.is_empty() && !is_headless && !is_name {
        all.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    all.extend(non_standard_ip(
        text("loadBalancerIP"),
        &path.child("loadBalancerIP"),
    ));
    let ranges = json::list(spec, "loadBalancerSourceRanges").iter();
    for (index, range) in ranges.enumerate() {
        let path = path.child("loadBalancerSourceRanges").index(index);
        all.extend(non_standard_range(range.as_str().unwrap_or(""), &path));
    }
    if is_name && !external.is_empty() {
        all.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_name && !text("externalName").is_empty() {
        all.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text("trafficDistribution") == "PreferClose" {
        all.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
    all
}

fn addresses(list: &[Value], path: &Path) -> Vec<String> {
    let list = list.iter().enumerate();
    list.filter_map(|(index, address)| {
        non_standard_ip(address.as_str().unwrap_or(""), &path.index(index))
    })
    .collect()
}
