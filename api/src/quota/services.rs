//! What Services use: themselves, their node ports, their load balancers.

use crate::amounts::Amounts;
use crate::json;
use crate::object::Object;

const NAMES: [&str; 4] = [
    "count/services",
    "services",
    "services.nodeports",
    "services.loadbalancers",
];

pub fn counts(name: &str) -> bool {
    NAMES.contains(&name)
}

pub fn usage(service: &Object) -> Amounts {
    let ports = service.list(&["spec", "ports"]);
    let (mut node_ports, mut balancers) = (0, 0);
    match service.str(&["spec", "type"]) {
        "NodePort" => node_ports = ports.len(),
        "LoadBalancer" => {
            balancers = 1;
            // Ports that nobody chose are yet to be allocated: what counts is the wish.
            let wishes = service.get(&["spec", "allocateLoadBalancerNodePorts"]);
            node_ports = if wishes.and_then(serde_json::Value::as_bool) == Some(false) {
                let chosen = |port| json::int(port, "nodePort").is_some_and(|port| port != 0);
                ports.iter().filter(|port| chosen(port)).count()
            } else {
                ports.len()
            };
        }
        _ => {}
    }
    let mut usage = Amounts::default();
    usage.set_count("count/services", 1);
    usage.set_count("services", 1);
    usage.set_count("services.nodeports", node_ports);
    usage.set_count("services.loadbalancers", balancers);
    usage
}
