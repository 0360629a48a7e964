//! Node ports: one number of a range on every node, for one Service.

use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::json;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use serde_json::Value;
use std::collections::HashSet;

/// Upstream's default `--service-node-port-range`.
const FIRST: i64 = 30000;
const LAST: i64 = 32767;
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

/// Fills in what is missing; `taken` has what other Services have and gets what this one takes.
pub fn assign(object: &mut Object, taken: &mut HashSet<i64>) -> Result<(), ErrorList> {
    let service = Service::of(object);
    let (needs_ports, needs_health) = (service.needs_node_ports(), service.needs_health_check());
    let mut errors = ErrorList::new();
    let path = Path::root("spec");
    if needs_ports {
        // What is asked for by number comes first, so that no other port takes it.
        for (index, port) in service.ports().iter().enumerate() {
            let path = path.child("ports").index(index).child("nodePort");
            errors.extend(check(node_port(port), taken, &path).err());
        }
        taken.extend(of(&service));
        let count = service.ports().len();
        for index in 0..count {
            let path = path.child("ports").index(index).child("nodePort");
            errors.extend(fill(object, index, taken, &path).err());
        }
    }
    if needs_health {
        let path = path.child("healthCheckNodePort");
        let asked = object.i64(&["spec", "healthCheckNodePort"]).unwrap_or(0);
        if asked == 0 {
            match any(taken) {
                Some(port) => object.set(&["spec", "healthCheckNodePort"], port.into()),
                None => errors.push(full(&path)),
            }
        } else if !needs_ports {
            errors.extend(check(asked, taken, &path).err());
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn check(asked: i64, taken: &HashSet<i64>, path: &Path) -> Result<(), FieldError> {
    if asked == 0 {
        return Ok(());
    }
    let detail = if !(FIRST..=LAST).contains(&asked) {
        format!(
            "provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}"
        )
    } else if taken.contains(&asked) {
        "provided port is already allocated".to_owned()
    } else {
        return Ok(());
    };
    Err(FieldError::invalid(path, asked, detail))
}

fn full(path: &Path) -> FieldError {
    FieldError::invalid(path, 0, "failed to allocate a nodePort: range is full")
}

/// One port of the Service. The same port over another protocol shares the number on the nodes.
fn fill(
    object: &mut Object,
    index: usize,
    taken: &mut HashSet<i64>,
    path: &Path,
) -> Result<(), FieldError> {
    let ports = object.list(&["spec", "ports"]);
    let Some(own) = ports.get(index).filter(|port| node_port(port) == 0) else {
        return Ok(());
    };
    let same = |other: &&Value| {
        json::int(other, "port") == json::int(own, "port")
            && json::text(other, "protocol") != json::text(own, "protocol")
    };
    let shared = ports.iter().filter(same).map(node_port);
    let shared = shared.into_iter().find(|port| *port != 0);
    let port = shared.or_else(|| any(taken)).ok_or_else(|| full(path))?;
    taken.insert(port);
    let ports = object.get_mut(&["spec", "ports"]);
    if let Some(own) = ports.and_then(|ports| ports.get_mut(index)) {
        own["nodePort"] = port.into();
    }
    Ok(())
}

fn any(taken: &HashSet<i64>) -> Option<i64> {
    let begin = FIRST + RESERVED;
    let random = (0..TRIES).map(|_| rand::random_range(begin..=LAST));
    random
        .chain(begin..=LAST)
        .chain(FIRST..begin)
        .find(|port| !taken.contains(port))
}
