//! What is counted of authorization itself, reviews included, under upstream's names.

use crate::metrics::text::Text;
use coracle_api::exposition::histogram::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// From a tenth of a millisecond, each twice the one before, as upstream.
const SECONDS: &[f64] = &[
    0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048,
];
/// Changes of the node authorizer's graph: by resource, of an object that is there and one gone.
const ACTIONS: [(&str, [&str; 2]); 4] = [
    ("pods", ["AddPod", "DeletePod"]),
    ("persistentvolumes", ["AddPV", "DeletePV"]),
    (
        "volumeattachments",
        ["AddVolumeAttachment", "DeleteVolumeAttachment"],
    ),
    (
        "resourceslices",
        ["AddResourceSlice", "DeleteResourceSlice"],
    ),
];

#[derive(Debug)]
pub struct Counts {
    by_node: AtomicU64,
    by_rbac: AtomicU64,
    actions: [[Durations; 2]; ACTIONS.len()],
}

impl Default for Counts {
    fn default() -> Self {
        let pair = || [Durations::new(SECONDS), Durations::new(SECONDS)];
        Self {
            by_node: AtomicU64::new(0),
            by_rbac: AtomicU64::new(0),
            actions: std::array::from_fn(|_| pair()),
        }
    }
}

impl Counts {
    pub(super) fn allowed_by_node(&self) {
        self.by_node.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn allowed_by_rbac(&self) {
        self.by_rbac.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn acted(&self, plural: &str, is_there: bool, elapsed: Duration) {
        let place = ACTIONS.iter().position(|(own, _)| *own == plural);
        if let Some(place) = place {
            self.actions[place][usize::from(!is_there)].add(elapsed);
        }
    }

    pub fn text(&self, text: &mut Text) {
        let decisions = "apiserver_authorization_decisions_total";
        let help = "Decisions that an authorizer made for good, by its type, name and decision.";
        text.family(decisions, "counter", help);
        let counts = [
            ("Node", "node", &self.by_node),
            ("RBAC", "rbac", &self.by_rbac),
        ];
        for (kind, name, count) in counts {
            let labels = [("type", kind), ("name", name), ("decision", "allowed")];
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                text.sample(decisions, &labels, count);
            }
        }
        let actions = "node_authorizer_graph_actions_duration_seconds";
        let help = "How long changes of the node authorizer's graph took, by operation.";
        text.family(actions, "histogram", help);
        for ((_, names), durations) in ACTIONS.iter().zip(&self.actions) {
            for (name, durations) in names.iter().zip(durations) {
                if durations.count() > 0 {
                    durations.text(text, actions, &[("operation", name)]);
                }
            }
        }
    }
}
