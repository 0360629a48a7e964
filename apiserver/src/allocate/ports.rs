//! Node ports: one number of a range on every node, for one Service.

use coracle_api::field::{FieldError, Path};
use coracle_api::json;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Upstream's default `--service-node-port-range`.
const FIRST: i64 = 30000;
const LAST: i64 = 32767;
/// Both are in it.
pub const RANGE: (i64, i64) = (FIRST, LAST);
/// Upstream leaves these at the low end to those who ask for a port by number.
const RESERVED: i64 = 86;
const TRIES: usize = 16;

/// All ports that a Service has on nodes.
pub fn of(service: &Service<'_>) -> Vec<i64> {
    let ports = service.ports().iter().map(node_port);
    let health = json::int(service.spec, "healthCheckNodePort").unwrap_or(0);
    ports.chain([health]).filter(|port| *port != 0).collect()
}

fn node_port(port: &Value) -> i64 {
    json::int(port, "nodePort").unwrap_or(0)
}

/// Why a Service cannot have the ports it asks for.
#[derive(Debug)]
pub enum Fault {
    Field(FieldError),
    Internal(String),
}

impl Fault {
    fn full(what: &str) -> Self {
        Self::Internal(format!("failed to allocate a {what}: range is full"))
    }
}

/// Fills in what is missing; `taken` has what other Services have and gets what this one takes.
/// The first thing that is wrong is all that is said, as upstream.
pub fn assign(
    object: &mut Object,
    old: Option<&Object>,
    taken: &mut HashSet<i64>,
) -> Result<(), Fault> {
    let service = Service::of(object);
    let (has_ports, needs_ports) = (
        matches!(service.kind(), "NodePort" | "LoadBalancer"),
        service.needs_node_ports(),
    );
    let needs_health = service.needs_health_check()
        && !old.is_some_and(|old| Service::of(old).needs_health_check());
    if has_ports {
        fill_all(object, old, needs_ports, taken)?;
    }
    if needs_health {
        health(object, taken)?;
    }
    Ok(())
}

fn fill_all(
    object: &mut Object,
    old: Option<&Object>,
    needs_ports: bool,
    taken: &mut HashSet<i64>,
) -> Result<(), Fault> {
    let had = old.map(|old| of(&Service::of(old))).unwrap_or_default();
    let ports = object.list(&["spec", "ports"]).to_vec();
    let path = Path::root("spec").child("ports");
    // What this Service asks for by number, no other port of it takes.
    let own: HashSet<i64> = ports.iter().map(node_port).collect();
    let mut given: HashMap<i64, i64> = HashMap::new();
    for (index, port) in ports.iter().enumerate() {
        let (asked, number) = (node_port(port), json::int(port, "port").unwrap_or(0));
        if asked == 0 && !needs_ports {
            continue;
        }
        // On create, the same port over another protocol shares the number on the nodes.
        let shared = old.is_none().then(|| {
            let first = given.get(&number).copied();
            first.or_else(|| asked_for(&ports, number))
        });
        let chosen = match (asked, shared.flatten()) {
            (0, Some(shared)) => shared,
            (0, None) => any(|port| taken.contains(&port) || own.contains(&port))
                .ok_or_else(|| Fault::full("nodePort"))?,
            (asked, _) => asked,
        };
        if !given.values().any(|port| *port == chosen) && !had.contains(&chosen) {
            check(chosen, taken).map_err(|detail| {
                let path = path.index(index).child("nodePort");
                Fault::Field(FieldError::invalid(&path, chosen, detail))
            })?;
        }
        given.entry(number).or_insert(chosen);
        if let Some(own) = object
            .get_mut(&["spec", "ports"])
            .and_then(|ports| ports.get_mut(index))
        {
            own["nodePort"] = chosen.into();
        }
    }
    taken.extend(of(&Service::of(object)));
    Ok(())
}

fn asked_for(ports: &[Value], number: i64) -> Option<i64> {
    ports
        .iter()
        .filter(|port| json::int(port, "port") == Some(number))
        .map(node_port)
        .find(|port| *port != 0)
}

fn health(object: &mut Object, taken: &HashSet<i64>) -> Result<(), Fault> {
    let asked = object.i64(&["spec", "healthCheckNodePort"]).unwrap_or(0);
    if asked == 0 {
        let Some(port) = any(|port| taken.contains(&port)) else {
            return Err(Fault::full("HealthCheck NodePort 0"));
        };
        object.set(&["spec", "healthCheckNodePort"], port.into());
        return Ok(());
    }
    check(asked, taken).map_err(|why| {
        let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
        Fault::Internal(why)
    })
}

fn check(asked: i64, taken: &HashSet<i64>) -> Result<(), String> {
    if !(FIRST..=LAST).contains(&asked) {
        return Err(format!(
            "provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}"
        ));
    }
    if taken.contains(&asked) {
        return Err("provided port is already allocated".to_owned());
    }
    Ok(())
}

fn any(is_taken: impl Fn(i64) -> bool) -> Option<i64> {
    let begin = FIRST + RESERVED;
    let random = (0..TRIES).map(|_| rand::random_range(begin..=LAST));
    random
        .chain(begin..=LAST)
        .chain(FIRST..begin)
        .find(|port| !is_taken(*port))
}
