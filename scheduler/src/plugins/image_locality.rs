//! Score: prefers nodes that have the pod's images, the more the larger the images are.
//!
//! An image counts in proportion to the part of the nodes that have it, so that not every pod of
//! one image goes to the one node that pulled it first.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, SCORE_MAX, Slot, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

/// Images smaller than this in sum are pulled quickly enough not to matter.
const BYTES_MIN: i64 = 23 * 1024 * 1024;
/// Per container: larger ones count no more than this.
const BYTES_MAX_EACH: i64 = 1000 * 1024 * 1024;

#[derive(Debug)]
pub struct ImageLocality;

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn points(&self) -> Points {
        Points::SCORE
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, world: &Snapshot, _slot: &Slot) -> i64 {
        let nodes = world.nodes.len().max(1) as f64;
        let known = pod.images.iter().filter_map(|image| world.image(image));
        let sum: i64 = known
            .filter(|(id, _)| node.images.binary_search(id).is_ok())
            .map(|(_, image)| (image.size as f64 * (image.nodes as f64 / nodes)) as i64)
            .sum();
        let most = BYTES_MAX_EACH * pod.container_count.max(1);
        SCORE_MAX * (sum.clamp(BYTES_MIN, most) - BYTES_MIN) / (most - BYTES_MIN)
    }

    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}
