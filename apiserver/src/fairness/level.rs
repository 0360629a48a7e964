//! PriorityLevelConfigurations: what a level is told to do, and how many seats that means.
//!
//! Pure.

use super::flow_schema::EXEMPT;
use super::queue_set::{Discipline, Queuing};
use coracle_api::object::Object;
use http::HeaderValue;
use std::sync::Arc;

/// The API's defaults.
const SHARES_DEFAULT: i64 = 30;
const QUEUES_DEFAULT: i64 = 64;
const HAND_DEFAULT: i64 = 8;
const LENGTH_DEFAULT: i64 = 50;
/// As upstream: no request may take more than this part of a level's seats.
const WIDTH_SHARE_MAX: f64 = 0.15;

#[derive(Clone, Debug, PartialEq)]
pub struct LevelSpec {
    pub name: Arc<str>,
    pub uid: HeaderValue,
    pub shares: u32,
    pub lendable_percent: u32,
    /// No bound when absent.
    pub borrowing_percent: Option<u32>,
    pub discipline: Discipline,
}

/// The seats of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    pub nominal: u32,
    /// Never fewer: what is not lent.
    pub least: u32,
    /// Never more: with all that may be borrowed.
    pub most: u32,
    /// What one request may take.
    pub width_max: u32,
}

impl LevelSpec {
    /// `None` for what makes no sense, which validation does not let in.
    pub fn of(object: &Object) -> Option<Self> {
        let is_exempt = object.str(&["spec", "type"]) == "Exempt";
        if is_exempt != (object.name() == EXEMPT) {
            return None;
        }
        let part = if is_exempt { "exempt" } else { "limited" };
        let number = |field: &str| object.i64(&["spec", part, field]);
        let count = |value: i64| u32::try_from(value).unwrap_or(0);
        let shares_default = if is_exempt { 0 } else { SHARES_DEFAULT };
        Some(Self {
            name: object.name().into(),
            uid: HeaderValue::from_str(object.uid())
                .unwrap_or_else(|_| HeaderValue::from_static("")),
            shares: count(number("nominalConcurrencyShares").unwrap_or(shares_default)),
            lendable_percent: count(number("lendablePercent").unwrap_or(0)),
            borrowing_percent: number("borrowingLimitPercent").map(count),
            discipline: if is_exempt {
                Discipline::Exempt
            } else {
                discipline(object)
            },
        })
    }

    /// The two that are there even when their objects are not.
    pub fn mandatory(name: &str) -> Self {
        let is_exempt = name == EXEMPT;
        Self {
            name: name.into(),
            uid: HeaderValue::from_static(""),
            shares: if is_exempt { 0 } else { 5 },
            lendable_percent: 0,
            borrowing_percent: None,
            discipline: if is_exempt {
                Discipline::Exempt
            } else {
                Discipline::Reject
            },
        }
    }

    pub fn is_exempt(&self) -> bool {
        self.discipline == Discipline::Exempt
    }

    /// This level's part of `total`, of which there are `shares` in all.
    pub fn seats(&self, total: u32, shares: u64) -> Seats {
        let part = f64::from(self.shares) / shares.max(1) as f64;
        let nominal = (f64::from(total) * part).ceil() as u32;
        let percent = |percent: u32| (f64::from(nominal) * f64::from(percent) / 100.0).round();
        let lendable = percent(self.lendable_percent) as u32;
        let borrowed = self
            .borrowing_percent
            .map_or(total, |own| percent(own) as u32);
        Seats {
            nominal,
            least: nominal.saturating_sub(lendable),
            most: nominal.saturating_add(borrowed),
            width_max: match self.discipline {
                Discipline::Queue(queuing) => {
                    let part = (f64::from(nominal) * WIDTH_SHARE_MAX).ceil() as u32;
                    part.min(nominal / (queuing.hand as u32).max(1)).max(1)
                }
                _ => u32::MAX,
            },
        }
    }
}

fn discipline(object: &Object) -> Discipline {
    let response = ["spec", "limited", "limitResponse"];
    if object.str(&[response[0], response[1], response[2], "type"]) != "Queue" {
        return Discipline::Reject;
    }
    let number = |field: &str, default: i64| {
        object
            .i64(&[response[0], response[1], response[2], "queuing", field])
            .filter(|value| *value > 0)
            .unwrap_or(default)
    };
    Discipline::Queue(Queuing {
        queues: u32::try_from(number("queues", QUEUES_DEFAULT)).unwrap_or(u32::MAX),
        hand: usize::try_from(number("handSize", HAND_DEFAULT)).unwrap_or(1),
        length_max: usize::try_from(number("queueLengthLimit", LENGTH_DEFAULT)).unwrap_or(1),
    })
}

#[cfg(test)]
mod tests;
