//! Divides a number of seats among levels that have bounds and targets.
//!
//! Every level gets the same fraction of its target, kept within its bounds, and all together get
//! the sum: there is exactly one such fraction when the bounds allow one at all. Pure.

/// Keeps a target of nothing from dividing by it.
const TARGET_MIN: f64 = 0.001;
/// What rounding of floating point numbers may add up to.
const EPSILON: f64 = 1e-7;

/// One level's part of the problem: `0 <= lower <= upper` and `lower <= target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    pub lower: f64,
    pub upper: f64,
    pub target: f64,
}

impl Claim {
    fn target(&self) -> f64 {
        self.target.max(TARGET_MIN)
    }

    fn at(&self, fraction: f64) -> f64 {
        (fraction * self.target()).clamp(self.lower, self.upper)
    }
}

/// What each gets, and the fraction.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    pub seats: Vec<f64>,
    pub fraction: f64,
}

/// `None` when the bounds add up to more, or to less, than there is to divide.
pub fn divide(total: f64, claims: &[Claim]) -> Option<Division> {
    let sum_at = |fraction: f64| claims.iter().map(|claim| claim.at(fraction)).sum::<f64>();
    let lowest: f64 = claims.iter().map(|claim| claim.lower).sum();
    let highest: f64 = claims.iter().map(|claim| claim.upper).sum();
    if lowest - total > EPSILON || total - highest > EPSILON {
        return None;
    }
    // The sum rises with the fraction, in straight lines between the fractions at which some level
    // leaves its lower bound or meets its upper one.
    let mut bends: Vec<f64> = claims
        .iter()
        .flat_map(|claim| [claim.lower / claim.target(), claim.upper / claim.target()])
        .collect();
    bends.sort_by(f64::total_cmp);
    let place = bends.partition_point(|bend| sum_at(*bend) < total);
    let fraction = match (
        place.checked_sub(1).map(|before| bends[before]),
        bends.get(place),
    ) {
        (_, None) => bends.last().copied().unwrap_or(0.0),
        (None, Some(first)) => *first,
        (Some(before), Some(after)) => {
            let (low, high) = (sum_at(before), sum_at(*after));
            if high - low > 0.0 {
                before + (after - before) * (total - low) / (high - low)
            } else {
                *after
            }
        }
    };
    Some(Division {
        seats: claims.iter().map(|claim| claim.at(fraction)).collect(),
        fraction,
    })
}

#[cfg(test)]
mod tests;
