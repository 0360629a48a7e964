//! The pod spec: what pods and all pod templates have in common.
//!
//! Knows nothing of a pod's own status or updates: that is `kinds::pod`.

pub mod defaults;
pub mod gates; // What upstream's gates keep out.
pub mod profiles; // Seccomp and AppArmor by annotation, as of old.
pub mod resources;
pub mod validate;
pub mod warnings;

use crate::field::Path;
use crate::json;
use serde_json::Value;

/// Marks the reflection of a pod that a node runs by itself.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// In the order upstream visits them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Containers of all lists, each with its path. `path` is that of the spec.
pub fn containers<'a>(spec: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    let of_list = |list: &'static str| {
        let path = path.child(list);
        let containers = json::list(spec, list).iter().enumerate();
        containers.map(move |(index, container)| (container, path.index(index)))
    };
    LISTS.into_iter().flat_map(of_list).collect()
}
