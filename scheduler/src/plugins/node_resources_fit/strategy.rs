//! How what is given away of a node's resources makes a score.

use crate::framework::SCORE_MAX;
use crate::plugins::node_resources::{Use, Weighted, default_resources};

/// Which nodes are better.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Those with much left.
    #[default]
    LeastAllocated,
    /// Those with little left.
    MostAllocated,
    /// By a curve of straight lines between points, at least one.
    RequestedToCapacityRatio(Vec<Point>),
}

/// Of a curve: the score at a use, both between 0 and 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub utilization: i64,
    pub score: i64,
}

#[derive(Clone, Debug)]
pub struct Scoring {
    pub strategy: Strategy,
    pub resources: Vec<Weighted>,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            resources: default_resources(),
        }
    }
}

impl Scoring {
    /// The weighted mean over the resources.
    pub fn score(&self, uses: impl Iterator<Item = Use>) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for one in uses {
            let score = self.strategy.of(one);
            // A curve leaves out of the mean what it gives nothing for.
            if score == 0 && matches!(self.strategy, Strategy::RequestedToCapacityRatio(_)) {
                continue;
            }
            sum += score * one.weight;
            weights += one.weight;
        }
        match (&self.strategy, weights) {
            (_, 0) => 0,
            (Strategy::RequestedToCapacityRatio(_), _) => {
                (sum as f64 / weights as f64).round() as i64
            }
            _ => sum / weights,
        }
    }
}

impl Strategy {
    fn of(&self, one: Use) -> i64 {
        let used = one.after.min(one.has);
        match self {
            Self::LeastAllocated => (one.has - used) * SCORE_MAX / one.has,
            Self::MostAllocated => used * SCORE_MAX / one.has,
            Self::RequestedToCapacityRatio(points) => on_curve(points, used * 100 / one.has),
        }
    }
}

fn on_curve(points: &[Point], utilization: i64) -> i64 {
    let Some(index) = points.iter().position(|one| utilization <= one.utilization) else {
        return points.last().map_or(0, |one| one.score);
    };
    let to = points[index];
    let Some(from) = index.checked_sub(1).map(|before| points[before]) else {
        return to.score;
    };
    from.score
        + (to.score - from.score) * (utilization - from.utilization)
            / (to.utilization - from.utilization)
}
