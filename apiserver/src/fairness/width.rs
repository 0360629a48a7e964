//! How many seats a request takes, guessed before it runs. Pure; upstream's rules of thumb.

use super::queue_set::Width;
use crate::query::Query;
use crate::request_info::RequestInfo;
use std::time::Duration;

/// A list takes one seat for so many objects that it has to look at.
const OBJECTS_PER_SEAT: usize = 100;
/// A write takes one seat for so many watchers that hear of it, once there are that many.
const WATCHERS_PER_SEAT: usize = 10;
/// For how long telling them takes one seat.
const TELLING: Duration = Duration::from_millis(5);
/// Wider ones would keep a level empty while they wait for room.
const SEATS_MAX: u32 = 10;

/// What the guess is made from. `objects` and `watchers` are looked up when they matter.
pub fn estimate(
    info: &RequestInfo,
    query: &Query,
    width_max: u32,
    objects: impl FnOnce() -> usize,
    watchers: impl FnOnce() -> usize,
) -> Width {
    let most = width_max.clamp(1, SEATS_MAX);
    match info.verb.as_str() {
        "get" => Width::ONE,
        "list" | "watch" if info.is_resource_request => {
            let count = looked_at(info, query, objects);
            let seats = u32::try_from(count.div_ceil(OBJECTS_PER_SEAT)).unwrap_or(u32::MAX);
            Width {
                initial: seats.clamp(1, most),
                ..Width::ONE
            }
        }
        _ if !info.is_resource_request || tells_nobody(info) => Width::ONE,
        _ => told(watchers(), most),
    }
}

fn looked_at(info: &RequestInfo, query: &Query, objects: impl FnOnce() -> usize) -> usize {
    if !info.name.is_empty() {
        return 1;
    }
    let from = query.text("resourceVersion");
    let wants_initial = query.flag("sendInitialEvents");
    if info.verb == "watch" && !wants_initial && !matches!(from, "" | "0") {
        return 1;
    }
    let stored = objects();
    let limit: Option<usize> = query.text("limit").parse().ok();
    match limit.filter(|limit| *limit > 0) {
        // A selector looks at more than it gives.
        Some(limit) if info.field_selector.is_empty() && info.label_selector.is_empty() => {
            stored.min(limit)
        }
        _ => stored,
    }
}

/// A token is made of a service account, and nobody who watches those sees it.
fn tells_nobody(info: &RequestInfo) -> bool {
    info.resource == "serviceaccounts" && info.subresource == "token"
}

fn told(watchers: usize, most: u32) -> Width {
    if watchers < WATCHERS_PER_SEAT {
        return Width::ONE;
    }
    let seats = u32::try_from(watchers.div_ceil(WATCHERS_PER_SEAT)).unwrap_or(u32::MAX);
    let lasting = seats.min(most);
    Width {
        initial: 1,
        lasting,
        // The same work, narrower and longer.
        lingering: TELLING.saturating_mul(seats) / lasting,
    }
}

#[cfg(test)]
mod tests;
