//! How fast an autoscaler goes to where its metrics point, and what it remembers for that. Pure.
//!
//! Times are since the loop began. What is remembered is bounded by the longest window (an hour)
//! and period (half an hour) that the API lets in, at one entry a pass.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscalerBehavior as Behavior,
};

/// How long a higher recommendation holds, where the object does not say.
const DOWNSCALE_STABILIZATION: Duration = Duration::from_secs(5 * 60);
/// Without rules, at most twice as many, or this many.
const SCALE_UP_FACTOR: i32 = 2;
const SCALE_UP_MIN: i32 = 4;

const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const WITHIN: (&str, &str) = (
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);
const TOO_FEW: (&str, &str) = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);
const TOO_MANY: (&str, &str) = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const UP_LIMIT: (&str, &str) = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const DOWN_LIMIT: (&str, &str) = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent \
     recommendation",
);

/// A count, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    replicas: i32,
    at: Duration,
}

impl Sample {
    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.at)
    }
}

/// What is remembered of one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// What metrics asked for, before anything held it back.
    recommendations: Vec<Sample>,
    /// By how many pods it grew.
    ups: Vec<Sample>,
    downs: Vec<Sample>,
}

/// Where to go, and why there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub replicas: i32,
    /// Reason and message of the condition `AbleToScale`.
    pub able: (&'static str, &'static str),
    /// Whether the condition `ScalingLimited` is true, its reason and message.
    pub is_limited: bool,
    pub limited: (&'static str, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub min: i32,
    pub max: i32,
}

impl Memory {
    /// The first thing that is known of a target is how many pods it has.
    pub(super) fn begin(&mut self, current: i32, now: Duration) {
        if self.recommendations.is_empty() {
            self.recommend(current, now);
        }
    }

    fn recommend(&mut self, replicas: i32, at: Duration) {
        self.recommendations.push(Sample { replicas, at });
    }

    /// A step towards what metrics ask for.
    pub(super) fn step(
        &mut self,
        behavior: Option<&Behavior>,
        bounds: Bounds,
        current: i32,
        wanted: i32,
        now: Duration,
    ) -> Step {
        let (stable, stabilized, (replicas, limited)) = match behavior {
            None => {
                let stable = self.highest(wanted, now);
                (stable, DOWN_STABILIZED, plainly(bounds, current, stable))
            }
            Some(behavior) => {
                let (stable, why) = self.stabilize(behavior, current, wanted, now);
                let limited = self.limit(behavior, bounds, current, stable, now);
                (stable, why, limited)
            }
        };
        Step {
            replicas,
            able: if stable == wanted { READY } else { stabilized },
            is_limited: replicas != stable,
            limited,
        }
    }

    /// The highest recommendation of the last minutes.
    fn highest(&mut self, wanted: i32, now: Duration) -> i32 {
        self.recommendations
            .retain(|one| one.age(now) <= DOWNSCALE_STABILIZATION);
        let highest = self.recommendations.iter().map(|one| one.replicas).max();
        self.recommend(wanted, now);
        highest.map_or(wanted, |highest| highest.max(wanted))
    }

    /// Grows to the lowest recommendation of a window, shrinks to the highest of another.
    fn stabilize(
        &mut self,
        behavior: &Behavior,
        current: i32,
        wanted: i32,
        now: Duration,
    ) -> (i32, (&'static str, &'static str)) {
        let up_window = window(behavior.scale_up.as_ref(), Duration::ZERO);
        let down_window = window(behavior.scale_down.as_ref(), DOWNSCALE_STABILIZATION);
        let within = |window: Duration| {
            let recent = self.recommendations.iter();
            let recent = recent.filter(move |one| one.age(now) < window);
            recent.map(|one| one.replicas)
        };
        let lowest = within(up_window).fold(wanted, i32::min);
        let highest = within(down_window).fold(wanted, i32::max);
        let longest = up_window.max(down_window);
        self.recommendations.retain(|one| one.age(now) <= longest);
        self.recommend(wanted, now);
        let why = if wanted >= current {
            UP_STABILIZED
        } else {
            DOWN_STABILIZED
        };
        (current.max(lowest).min(highest), why)
    }

    /// What rates and bounds let through.
    fn limit(
        &self,
        behavior: &Behavior,
        bounds: Bounds,
        current: i32,
        wanted: i32,
        now: Duration,
    ) -> (i32, (&'static str, &'static str)) {
        if wanted > current {
            let limit = self.up_limit(behavior.scale_up.as_ref(), current, now);
            let limit = limit.max(current);
            let (most, why) = match bounds.max > limit {
                true => (limit, UP_LIMIT),
                false => (bounds.max, TOO_MANY),
            };
            if wanted > most {
                return (most, why);
            }
        } else if wanted < current {
            let limit = self.down_limit(behavior.scale_down.as_ref(), current, now);
            let limit = limit.min(current);
            let (least, why) = match bounds.min < limit {
                true => (limit, DOWN_LIMIT),
                false => (bounds.min, TOO_FEW),
            };
            if wanted < least {
                return (least, why);
            }
        }
        (wanted, WITHIN)
    }

    fn up_limit(&self, rules: Option<&HPAScalingRules>, current: i32, now: Duration) -> i32 {
        let proposals = self.proposals(rules, current, now, |kind, start, value| match kind {
            "Pods" => start.saturating_add(value),
            // Rounded up: it must be able to grow at all.
            _ => (f64::from(start) * (1.0 + f64::from(value) / 100.0)).ceil() as i32,
        });
        match selection(rules) {
            "Disabled" => current,
            "Min" => proposals.min().unwrap_or(i32::MAX),
            _ => proposals.max().unwrap_or(i32::MIN),
        }
    }

    fn down_limit(&self, rules: Option<&HPAScalingRules>, current: i32, now: Duration) -> i32 {
        let proposals = self.proposals(rules, current, now, |kind, start, value| match kind {
            "Pods" => start.saturating_sub(value),
            _ => (f64::from(start) * (1.0 - f64::from(value) / 100.0)) as i32,
        });
        match selection(rules) {
            "Disabled" => current,
            "Min" => proposals.max().unwrap_or(i32::MIN),
            _ => proposals.min().unwrap_or(i32::MAX),
        }
    }

    /// What each policy lets it come to, from how many pods there were when its period began.
    fn proposals(
        &self,
        rules: Option<&HPAScalingRules>,
        current: i32,
        now: Duration,
        propose: impl Fn(&str, i32, i32) -> i32,
    ) -> impl Iterator<Item = i32> {
        let policies = rules.and_then(|rules| rules.policies.as_deref());
        let policies = policies.unwrap_or_default().iter();
        policies.map(move |policy| {
            let period = seconds(policy.period_seconds);
            let (added, removed) = (
                within(&self.ups, period, now),
                within(&self.downs, period, now),
            );
            let start = current.saturating_sub(added).saturating_add(removed);
            propose(&policy.type_, start, policy.value)
        })
    }

    /// Notes a step that was made. Without rules nobody asks for it.
    pub(super) fn scaled(
        &mut self,
        behavior: Option<&Behavior>,
        from: i32,
        to: i32,
        now: Duration,
    ) {
        let Some(behavior) = behavior else {
            return;
        };
        let (rules, steps) = match to > from {
            true => (&behavior.scale_up, &mut self.ups),
            false => (&behavior.scale_down, &mut self.downs),
        };
        let policies = rules
            .iter()
            .flat_map(|rules| rules.policies.iter().flatten());
        let longest = policies.map(|policy| policy.period_seconds).max();
        let longest = seconds(longest.unwrap_or(0));
        steps.retain(|one| one.age(now) <= longest);
        steps.push(Sample {
            replicas: (to - from).saturating_abs(),
            at: now,
        });
    }
}

fn within(steps: &[Sample], period: Duration, now: Duration) -> i32 {
    let recent = steps.iter().filter(|one| one.age(now) < period);
    recent.fold(0, |sum, one| sum.saturating_add(one.replicas))
}

fn seconds(count: i32) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

fn window(rules: Option<&HPAScalingRules>, default: Duration) -> Duration {
    let window = rules.and_then(|rules| rules.stabilization_window_seconds);
    window.map_or(default, seconds)
}

fn selection(rules: Option<&HPAScalingRules>) -> &str {
    let select = rules.and_then(|rules| rules.select_policy.as_deref());
    select.unwrap_or("Max")
}

fn plainly(bounds: Bounds, current: i32, wanted: i32) -> (i32, (&'static str, &'static str)) {
    let limit = current.saturating_mul(SCALE_UP_FACTOR).max(SCALE_UP_MIN);
    let (most, why) = match bounds.max > limit {
        true => (limit, UP_LIMIT),
        false => (bounds.max, TOO_MANY),
    };
    if wanted < bounds.min {
        (bounds.min, TOO_FEW)
    } else if wanted > most {
        (most, why)
    } else {
        (wanted, WITHIN)
    }
}

#[cfg(test)]
mod tests;
