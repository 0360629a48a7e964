//! One pod a world: what ours says of it before upstream's may place it, and what that one does.

use crate::compare::{self, Outcome};
use crate::site::{Site, Waits};
use crate::tally::Tally;
use crate::world::{self, World};
use coracle_scheduler::explain_pod;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;

/// Holds the pod back until ours was asked.
const HOLD: &str = "example.com/hold";

pub fn run(upstream: &Path, seeds: Range<u64>) -> Tally {
    let mut site = Site::new(upstream);
    let mut tally = Tally::new("decisions");
    for seed in seeds {
        let world = World::of(seed);
        let mut found = decide(&mut site, &world, Waits::Short);
        if found.is_err() {
            tally.second_look();
            // Upstream's informers may have lagged: what stands has to show once more.
            found = decide(&mut site, &world, Waits::Long);
        }
        match found {
            Ok(outcome) => tally.count(outcome),
            Err(difference) => tally.differs(seed, &difference, &world.to_string()),
        }
        tally.world_done();
    }
    tally
}

fn decide(site: &mut Site, world: &World, waits: Waits) -> Result<Outcome, String> {
    site.clear();
    site.make(world);
    let mut pod = world.pod.clone();
    let is_gated = pod["spec"]["schedulingGates"].is_array();
    if !is_gated {
        pod["spec"]["schedulingGates"] = json!([{ "name": HOLD }]);
    }
    site.create(&pod);
    let (namespace, name) = (world::namespace(&pod), world::name(&pod));
    let told = site.block_on(explain_pod(site.client(), namespace, name));
    let told = told.map_err(|error| format!("not explained: {error}"))?;
    if is_gated {
        return match told.explanation.gated_by {
            Some("SchedulingGates") => Ok(Outcome::Gated),
            other => Err(format!("gated, but by {other:?}")),
        };
    }
    site.settle(waits);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    site.patch(
        &path,
        &json!({ "spec": { "schedulingGates": Value::Null } }),
    );
    let decision = site.decision(&format!("{namespace}/{name}"))?;
    compare::decisions(&decision, &told.explanation)
}
