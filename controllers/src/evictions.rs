//! What is counted of pods that are deleted for taints, under upstream's names.
//!
//! Of the whole process, as the counters of loops are: they go on when the loop begins again.

use std::sync::LazyLock;
use std::time::Duration;

use coracle_api::exposition::Text;
use coracle_api::exposition::histogram::Durations;

/// Upstream's.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0,
];

pub(crate) static OF_NODES: LazyLock<Evictions> = LazyLock::new(|| Evictions {
    total: "taint_eviction_controller_pod_deletions_total",
    seconds: "taint_eviction_controller_pod_deletion_duration_seconds",
    whose: "their node",
    late: Durations::new(SECONDS),
});
pub(crate) static OF_DEVICES: LazyLock<Evictions> = LazyLock::new(|| Evictions {
    total: "device_taint_eviction_controller_pod_deletions_total",
    seconds: "device_taint_eviction_controller_pod_deletion_duration_seconds",
    whose: "their devices",
    late: Durations::new(SECONDS),
});

pub(crate) struct Evictions {
    total: &'static str,
    seconds: &'static str,
    whose: &'static str,
    late: Durations,
}

impl Evictions {
    /// One more, so long after it was due.
    pub(crate) fn add(&self, late: Duration) {
        self.late.add(late);
    }

    fn text(&self, text: &mut Text) {
        let whose = self.whose;
        let help = format!("Pods deleted for taints of {whose}.");
        text.family(self.total, "counter", &help);
        text.sample(self.total, &[], self.late.count());
        let help = format!("How long after the time that taints of {whose} left them.");
        text.family(self.seconds, "histogram", &help);
        self.late.text(text, self.seconds, &[]);
    }
}

/// All of it, as metrics.
pub fn metrics_text(text: &mut Text) {
    OF_NODES.text(text);
    OF_DEVICES.text(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_with_how_late_it_was() {
        let evictions = Evictions {
            total: "a_total",
            seconds: "a_seconds",
            whose: "their node",
            late: Durations::new(SECONDS),
        };
        evictions.add(Duration::from_millis(50));
        evictions.add(Duration::from_secs(300));
        let mut text = Text::default();
        evictions.text(&mut text);
        let text = text.into_string();
        for line in [
            "a_total 2",
            "a_seconds_bucket{le=\"0.025\"} 0",
            "a_seconds_bucket{le=\"0.1\"} 1",
            "a_seconds_bucket{le=\"240\"} 1",
            "a_seconds_bucket{le=\"+Inf\"} 2",
            "a_seconds_count 2",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
    }
}
