//! The end of a group.

use super::Hierarchies;
use std::time::Duration;

/// Together a second: a process that takes longer to die is stuck in the kernel.
const TRIES_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

impl Hierarchies {
    /// Kills what is in a group and removes it. Processes that are still dying keep it a moment.
    pub async fn clear(&self, group: &str) {
        for _ in 0..TRIES_MAX {
            self.remove(group);
            if !self.exists(group) {
                return;
            }
            self.kill(group);
            tokio::time::sleep(PAUSE).await;
        }
        tracing::warn!(group, "cannot remove a control group");
    }
}
