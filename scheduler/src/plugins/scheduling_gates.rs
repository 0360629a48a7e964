//! PreEnqueue: keeps a pod out of the queue while it has scheduling gates.
//!
//! The API server tells users so in the PodScheduled condition when the pod is created; a gate is
//! only ever taken away, which comes here as a change of the pod.

use crate::framework::{Plugin, Points, WorldChange};
use crate::pod_info::PodInfo;

#[derive(Debug)]
pub struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn pre_enqueue(&self, pod: &PodInfo) -> bool {
        pod.gates().is_empty()
    }

    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        matches!(change, WorldChange::Itself)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::Profile;
    use crate::plugins::scene::pod;
    use crate::queue::Queue;
    use coracle_client::clock::Instant;
    use serde_json::json;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_gated_pod_waits_until_its_last_gate_is_taken_away() {
        let plugins: Vec<(crate::framework::SharedPlugin, i64)> =
            vec![(Arc::new(SchedulingGates), 0)];
        let queue = Queue::new(Profile::new("default-scheduler", plugins));
        for gates in [
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "b"}]),
        ] {
            let gated = pod("", json!({ "schedulingGates": gates }));
            queue.set(Arc::new(gated), Instant::now());
            assert_eq!(queue.depth().active, 0);
        }
        queue.set(
            Arc::new(pod("", json!({ "schedulingGates": [] }))),
            Instant::now(),
        );
        assert_eq!(queue.next().await.pod.uid, "new");
    }
}
