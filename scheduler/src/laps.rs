//! What one cycle took: the time of each point, of a part of the calls of plugins, and how often
//! each plugin was asked.
//!
//! A cycle has no clock of its own: it is handed this, and nothing that it decides depends on it.
//! Kept by one owner without atomics or locks; `metrics.rs` takes it over when the cycle is done.

use crate::framework::{Point, Verdict};
use coracle_client::clock::{Clock, Instant};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Calls of one plugin at one point that are timed in a cycle that is sampled: reading the clock
/// takes longer than most filters, and clusters have many nodes.
const TIMED_MAX: u32 = 8;

/// Where plugins are asked, by upstream's names. The first ones are those of which is counted how
/// often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    PreFilter,
    Filter,
    PreScore,
    Score,
    ScoreExtensionNormalize,
    PostFilter,
    Reserve,
    Unreserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

impl Stage {
    pub const COUNTED: [Self; 4] = [Self::PreFilter, Self::Filter, Self::PreScore, Self::Score];
    pub const ALL: [Self; 12] = [
        Self::PreFilter,
        Self::Filter,
        Self::PreScore,
        Self::Score,
        Self::ScoreExtensionNormalize,
        Self::PostFilter,
        Self::Reserve,
        Self::Unreserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
    ];

    /// Of the points that are counted.
    pub fn point(self) -> Option<Point> {
        match self {
            Self::PreFilter => Some(Point::PreFilter),
            Self::Filter => Some(Point::Filter),
            Self::PreScore => Some(Point::PreScore),
            Self::Score => Some(Point::Score),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::PreFilter => "PreFilter",
            Self::Filter => "Filter",
            Self::PreScore => "PreScore",
            Self::Score => "Score",
            Self::ScoreExtensionNormalize => "ScoreExtensionNormalize",
            Self::PostFilter => "PostFilter",
            Self::Reserve => "Reserve",
            Self::Unreserve => "Unreserve",
            Self::Permit => "Permit",
            Self::PreBind => "PreBind",
            Self::Bind => "Bind",
            Self::PostBind => "PostBind",
        }
    }
}

/// How it ended, by upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Success,
    Error,
    Unschedulable,
    Unresolvable,
    Wait,
    Skip,
}

impl Status {
    pub const ALL: [Self; 6] = [
        Self::Success,
        Self::Error,
        Self::Unschedulable,
        Self::Unresolvable,
        Self::Wait,
        Self::Skip,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Error => "Error",
            Self::Unschedulable => "Unschedulable",
            Self::Unresolvable => "UnschedulableAndUnresolvable",
            Self::Wait => "Wait",
            Self::Skip => "Skip",
        }
    }

    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Fit => Self::Success,
            Verdict::Unschedulable(_) => Self::Unschedulable,
            Verdict::Unresolvable(_) => Self::Unresolvable,
            Verdict::Failed(_) => Self::Error,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PointLap {
    pub stage: Stage,
    pub status: Status,
    pub took: Duration,
}

/// A call of the plugin at a place of the profile.
#[derive(Clone, Copy, Debug)]
pub struct CallLap {
    pub place: usize,
    pub lap: PointLap,
}

#[derive(Debug)]
pub struct Laps {
    clock: Clock,
    is_sampled: bool,
    /// A plugin of the profile each, in its order.
    asked: Vec<[Cell<u32>; Stage::COUNTED.len()]>,
    /// Filters that are asked for each node, in their order, and how many nodes had so many of them
    /// asked: cheaper than to count each call.
    filters: RefCell<Vec<usize>>,
    nodes: Vec<Cell<u32>>,
    points: RefCell<Vec<PointLap>>,
    calls: RefCell<Vec<CallLap>>,
}

impl Laps {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            is_sampled: false,
            asked: Vec::new(),
            filters: RefCell::default(),
            nodes: Vec::new(),
            points: RefCell::default(),
            calls: RefCell::default(),
        }
    }

    /// Begins with nothing, for a profile of so many plugins; only a cycle that is sampled has
    /// their calls timed.
    pub fn begin(&mut self, plugins: usize, is_sampled: bool) {
        self.asked.clear();
        self.asked.resize_with(plugins, Default::default);
        self.filters.get_mut().clear();
        self.nodes.clear();
        self.nodes.resize_with(plugins + 1, Cell::default);
        self.points.get_mut().clear();
        self.calls.get_mut().clear();
        self.is_sampled = is_sampled;
    }

    pub fn timing(&self) -> Timing<'_> {
        Timing(Some(self))
    }

    /// How often each plugin was asked at the points that are counted.
    pub fn asked(&self) -> Vec<[u32; Stage::COUNTED.len()]> {
        let rows = self.asked.iter();
        let mut asked: Vec<_> = rows.map(|row| row.each_ref().map(Cell::get)).collect();
        let mut nodes: u32 = 0;
        // Who had a filter asked had those before it asked too.
        for (number, place) in self.filters.borrow().iter().enumerate().rev() {
            nodes = nodes.saturating_add(self.nodes.get(number + 1).map_or(0, Cell::get));
            if let Some(row) = asked.get_mut(*place) {
                row[Stage::Filter as usize] = row[Stage::Filter as usize].saturating_add(nodes);
            }
        }
        asked
    }

    pub fn points(&mut self) -> &[PointLap] {
        self.points.get_mut()
    }

    pub fn calls(&mut self) -> &[CallLap] {
        self.calls.get_mut()
    }

    fn call<T>(
        &self,
        (stage, place): (Stage, usize),
        call: impl FnOnce() -> T,
        status: impl FnOnce(&T) -> Status,
    ) -> T {
        let asked = self.asked.get(place);
        let asked = asked.and_then(|row| row.get(stage as usize));
        let before = asked.map_or(0, Cell::get);
        let is_timed = self.is_sampled && before < TIMED_MAX;
        let started = is_timed.then(|| self.clock.monotonic());
        let said = call();
        let status = status(&said);
        if let Some(started) = started {
            let lap = self.lap(stage, status, started);
            self.calls.borrow_mut().push(CallLap { place, lap });
        }
        // As upstream counts: one that has nothing to say was not asked.
        if let Some(asked) = asked.filter(|_| status != Status::Skip) {
            asked.set(before.saturating_add(1));
        }
        said
    }

    fn lap(&self, stage: Stage, status: Status, started: Instant) -> PointLap {
        PointLap {
            stage,
            status,
            took: self.clock.monotonic().duration_since(started),
        }
    }
}

/// How a cycle is timed, if it is. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Timing<'a>(Option<&'a Laps>);

impl Timing<'_> {
    pub const OFF: Timing<'static> = Timing(None);

    /// All that is done at one point.
    pub fn point<T>(
        self,
        stage: Stage,
        work: impl FnOnce() -> T,
        status: impl FnOnce(&T) -> Status,
    ) -> T {
        let Some(laps) = self.0 else {
            return work();
        };
        let started = laps.clock.monotonic();
        let done = work();
        let lap = laps.lap(stage, status(&done), started);
        laps.points.borrow_mut().push(lap);
        done
    }

    /// True where each call is to go through `call`.
    pub fn is_detailed(self) -> bool {
        self.0.is_some_and(|laps| laps.is_sampled)
    }

    /// These are the filters that each node is asked about from now on.
    pub fn filters(self, places: impl Iterator<Item = usize>) {
        if let Some(laps) = self.0 {
            laps.filters.borrow_mut().extend(places);
        }
    }

    /// For one node so many of the filters were asked, none of them through `call`.
    pub fn filtered(self, filters: usize) {
        if let Some(count) = self.0.and_then(|laps| laps.nodes.get(filters)) {
            count.set(count.get().saturating_add(1));
        }
    }

    /// The plugin was asked so often, and not through `call`.
    pub fn called(self, (stage, place): (Stage, usize), times: usize) {
        let row = self.0.and_then(|laps| laps.asked.get(place));
        if let Some(count) = row.and_then(|row| row.get(stage as usize)) {
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            count.set(count.get().saturating_add(times));
        }
    }

    /// One call of the plugin at a place of the profile.
    pub fn call<T>(
        self,
        at: (Stage, usize),
        call: impl FnOnce() -> T,
        status: impl FnOnce(&T) -> Status,
    ) -> T {
        match self.0 {
            None => call(),
            Some(laps) => laps.call(at, call, status),
        }
    }
}

#[cfg(test)]
mod tests;
