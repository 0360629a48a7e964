//! For how long a pod bears the taints of its node. Pure.

use std::time::Duration;

use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::{Taint, Toleration};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bears {
    /// Zero when a taint is not tolerated at all.
    For(Duration),
    Forever,
}

/// The first toleration that matches a taint counts for it, and the shortest of these for all.
pub(super) fn bears<'a>(
    tolerations: &[Toleration],
    taints: impl Iterator<Item = &'a Taint>,
) -> Bears {
    let mut shortest = None;
    for taint in taints {
        let Some(first) = tolerations.iter().find(|one| tolerates(one, taint)) else {
            return Bears::For(Duration::ZERO);
        };
        if let Some(seconds) = first.toleration_seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            shortest = Some(shortest.map_or(time, |other: Duration| other.min(time)));
        }
    }
    shortest.map_or(Bears::Forever, Bears::For)
}
