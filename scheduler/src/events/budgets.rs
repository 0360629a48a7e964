//! What changes of disruption budgets mean here: preemption spares their pods where it can.

use super::World;
use coracle_client::informer::{Change, Informer};
use coracle_client::key_of;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

pub fn follow(world: &World, budgets: &Informer<PodDisruptionBudget>) {
    let mine = world.clone();
    budgets.on_change(move |change| mine.budget(change));
}

impl World {
    fn budget(&self, change: &Change<PodDisruptionBudget>) {
        let mut cache = self.views.cache.lock();
        match change {
            Change::Added(budget) | Change::Updated { new: budget, .. } => {
                cache.set_budget(budget);
            }
            Change::Deleted(budget) => cache.remove_budget(&key_of(budget.as_ref())),
            Change::Resync(_) => {}
        }
    }
}
