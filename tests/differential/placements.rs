//! Pod after pod: a twin of each is given to upstream's scheduler and taken away again, then ours
//! places the pod itself, which has to be where upstream's could have put the twin.

use crate::compare;
use crate::site::{OURS, Site, Waits};
use crate::tally::Tally;
use crate::world::{self, World};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;

/// In a world, one after another.
const PODS: usize = 8;

pub fn run(upstream: &Path, seeds: Range<u64>) -> Tally {
    let mut site = Site::new(upstream);
    site.start_ours();
    let mut tally = Tally::new("placements");
    for seed in seeds {
        let world = World::peaceful(seed);
        site.clear();
        site.make(&world);
        site.settle(Waits::Short);
        for turn in 0..PODS {
            let pod = world::next_pod(seed, turn);
            let mut found = place(&mut site, &pod);
            if found.is_err() {
                // One of the two may have lagged.
                tally.second_look();
                site.delete_pod(&pod);
                site.settle(Waits::Long);
                // What is said of the first twin is not of the second, which has its name.
                site.forget_log();
                found = place(&mut site, &pod);
            }
            match found {
                Ok(outcome) => tally.count(outcome),
                Err(difference) => {
                    let text = format!("pod {turn}: {difference}");
                    tally.differs(seed, &text, &site.world());
                    break;
                }
            }
        }
        tally.world_done();
    }
    tally
}

fn place(site: &mut Site, pod: &Value) -> Result<compare::Outcome, String> {
    let mut twin = pod.clone();
    twin["metadata"]["name"] = format!("{}-twin", world::name(pod)).into();
    site.create(&twin);
    let key = format!("{}/{}", world::namespace(pod), world::name(&twin));
    let decision = site.decision(&key);
    site.delete_pod(&twin);
    let decision = decision?;
    let mut own = pod.clone();
    own["spec"]["schedulerName"] = OURS.into();
    site.create(&own);
    match (site.placed(&own)?, &decision.refusal) {
        (Ok(node), _) => compare::placement(&decision, &node),
        (Err(message), None) => Err(format!("ours fits nowhere: {message}")),
        (Err(message), Some(refusal)) => {
            compare::same_text(refusal, &message)?;
            site.delete_pod(&own);
            Ok(compare::Outcome::FitsNowhere)
        }
    }
}
