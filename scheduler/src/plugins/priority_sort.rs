//! QueueSort: higher priority first, then whoever came first.

use crate::framework::{Plugin, Points, SortKey, WorldChange};
use crate::pod_info::PodInfo;

#[derive(Debug)]
pub struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn sort_key(&self, pod: &PodInfo, entered: u64) -> SortKey {
        (-i64::from(pod.priority), entered)
    }

    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}
