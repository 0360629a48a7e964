//! `componentstatuses`: the health of the control plane's parts, told when asked and never stored.
//!
//! A part of this process says for itself whether it runs. One that runs elsewhere is known by the
//! lease of its leader: a lease that is renewed in time is a part that works.

use super::asked::Asked;
use super::told;
use crate::Api;
use crate::options::ListOptions;
use crate::registry::glance::Traits;
use crate::tunnel::Body;
use coracle_api::kinds::component_status;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use coracle_api::{catalogue, print};
use http::{Response, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub const KIND: &str = component_status::KIND;

/// The parts, and the lease that the leader of each holds; the store answers for itself.
const PARTS: [(&str, &str); 2] = [
    ("controller-manager", "kube-controller-manager"),
    ("scheduler", "kube-scheduler"),
];
const STORE: &str = "etcd-0";
const NAMESPACE: &str = "kube-system";

/// Whether a part of this process runs.
pub type Probe = Arc<dyn Fn() -> bool + Send + Sync>;

/// The parts of this process by name.
#[derive(Default)]
pub struct Components(Mutex<BTreeMap<&'static str, Probe>>);

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.lock().keys()).finish()
    }
}

impl Components {
    /// From now on the part is of this process.
    pub fn register(&self, name: &'static str, probe: Probe) {
        self.0.lock().insert(name, probe);
    }

    fn inside(&self, name: &str) -> Option<bool> {
        let probe = self.0.lock().get(name).map(Arc::clone);
        probe.map(|probe| probe())
    }
}

/// One part, by name.
pub fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let name = asked.info.name.as_str();
    let found = all(api, asked).into_iter().find(|one| one.name() == name);
    let found = found.ok_or_else(|| {
        Status::not_found(Subject {
            group: "",
            resource: asked.resource.singular,
            name,
        })
    })?;
    Ok(asked.shape.object(StatusCode::OK, asked.resource, &found))
}

/// All parts; selectors count as for any list.
pub fn list(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    let mut parts = all(api, asked);
    parts.retain(|part| {
        let traits = Traits::of_object(asked.resource, part);
        options.selection.matches(asked.resource, &traits)
    });
    Ok(told::list(asked, parts))
}

fn all(api: &Api, asked: &Asked<'_>) -> Vec<Object> {
    let mut parts: Vec<Object> = PARTS
        .iter()
        .map(|(name, lease)| match api.components.inside(name) {
            Some(true) => component_status::of(name, Ok("ok")),
            Some(false) => component_status::of(name, Err("the part has ended")),
            None => component_status::of(name, led(api, lease, asked.now.as_second())),
        })
        .collect();
    // That this is answered at all says that the store works: it ends the process when it fails.
    parts.push(component_status::of(STORE, Ok("ok")));
    parts.sort_by(|a, b| a.name().cmp(b.name()));
    parts
}

/// Whether somebody holds the lease and renews it in time.
fn led(api: &Api, lease: &str, now: i64) -> Result<&'static str, &'static str> {
    const NOBODY: &str = "no leader holds the lease";
    let row = catalogue::find("coordination.k8s.io", "v1", "leases").ok_or(NOBODY)?;
    let stored = api
        .registry
        .get(row, NAMESPACE, lease)
        .map_err(|_| NOBODY)?;
    let spec = |field: &str| stored.object.get(&["spec", field]);
    let renewed = spec("renewTime").and_then(Value::as_str).unwrap_or("");
    let renewed = print::epoch_seconds(renewed).ok_or(NOBODY)?;
    let seconds = spec("leaseDurationSeconds").and_then(Value::as_i64);
    if renewed + seconds.unwrap_or(0) >= now {
        Ok("ok")
    } else {
        Err("the lease of the leader ran out")
    }
}
