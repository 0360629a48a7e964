//! How many pods wait where, and why.

use super::{Place, State};
use crate::queue::Depth;
use std::collections::BTreeMap;

/// For metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub depth: Depth,
    pub gated: usize,
    /// How many pods came to a part of the queue, by what brought them there.
    pub came: BTreeMap<(&'static str, &'static str), u64>,
    /// How many pods that wait were refused by a plugin of a profile.
    pub refused: BTreeMap<(&'static str, String), usize>,
    /// What is kept for pods in flight: they themselves, and changes of the world by their label.
    pub kept: BTreeMap<&'static str, usize>,
}

impl State {
    /// Looks at every pod that waits and every change that is kept.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures {
            depth: self.depth(),
            came: self.came.clone(),
            ..Figures::default()
        };
        for known in self.known.values() {
            match known.place {
                Place::InFlight(_) => continue,
                Place::Gated => figures.gated += 1,
                _ => {}
            }
            for plugin in &known.refused_by {
                let profile = known.pod.scheduler_name().to_owned();
                *figures.refused.entry((plugin, profile)).or_default() += 1;
            }
        }
        figures.kept.insert("PodPopped", self.in_flight);
        for change in &self.changes {
            *figures.kept.entry(change.label()).or_default() += 1;
        }
        figures
    }
}
