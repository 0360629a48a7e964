//! `/debug/api_priority_and_fairness/*`: levels, queues and requests as they are now, in upstream's
//! columns.

use super::Fairness;
use super::queue_set::Request;
use super::state::Payload;
use std::time::Duration;

pub const PATH: &str = "/debug/api_priority_and_fairness/";

type Row = Vec<String>;

impl Fairness {
    /// The named dump. `began` is when the server started, in seconds since the epoch.
    pub fn dump(&self, name: &str, with_details: bool, began: jiff::Timestamp) -> Option<String> {
        let rows = match name {
            "dump_priority_levels" => self.levels(),
            "dump_queues" => self.queues(),
            "dump_requests" => self.requests(with_details, began),
            _ => return None,
        };
        Some(aligned(&rows))
    }

    fn levels(&self) -> Vec<Row> {
        let mut rows = vec![row(&[
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ])];
        for level in self.state().levels.values() {
            let inside = level.inside.lock();
            let (set, totals) = (&inside.set, inside.set.totals());
            let active = set.queues().filter(|(_, queue)| !queue.waiting.is_empty());
            rows.push(vec![
                level.name.to_string(),
                active.count().to_string(),
                set.is_idle().to_string(),
                inside.is_quiescing.to_string(),
                set.waiting().to_string(),
                set.running().to_string(),
                totals.dispatched.to_string(),
                totals.rejected.to_string(),
                totals.timed_out.to_string(),
                totals.cancelled.to_string(),
            ]);
        }
        rows
    }

    /// Queues that nobody is in do not exist and are not shown.
    fn queues(&self) -> Vec<Row> {
        let mut rows = vec![row(&[
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ])];
        for level in self.state().levels.values() {
            let inside = level.inside.lock();
            for (card, queue) in inside.set.queues() {
                rows.push(vec![
                    level.name.to_string(),
                    card.to_string(),
                    queue.waiting.len().to_string(),
                    queue.running.to_string(),
                    queue.seats_in_use.to_string(),
                    format!("{:.8}ss", queue.next_dispatch_seconds()),
                    queue.waiting_initial_seats.to_string(),
                    queue.waiting_seats.to_string(),
                    format!("{:.8}ss", queue.waiting_work_seconds()),
                ]);
            }
        }
        rows
    }

    fn requests(&self, with_details: bool, began: jiff::Timestamp) -> Vec<Row> {
        let mut head = row(&[
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            "FlowDistingsher",
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
            "StartTime",
        ]);
        if with_details {
            head.extend(row(&[
                "UserName",
                "Verb",
                "APIPath",
                "Namespace",
                "Name",
                "APIVersion",
                "Resource",
                "SubResource",
            ]));
        }
        let mut rows = vec![head];
        for level in self.state().levels.values() {
            let inside = level.inside.lock();
            for (ticket, request) in inside.set.requests() {
                if !request.is_waiting() && !request.is_running() {
                    continue;
                }
                let queue = request.queue.and_then(|card| {
                    let mut queues = inside.set.queues();
                    queues.find(|(own, _)| *own == card)
                });
                let index = queue.and_then(|(_, queue)| {
                    let mut waiting = queue.waiting.iter();
                    waiting.position(|own| *own == ticket)
                });
                let mut row = one(&level.name, request, index, began);
                if with_details {
                    row.extend(details(&request.payload));
                }
                rows.push(row);
            }
        }
        rows
    }
}

fn row(texts: &[&str]) -> Row {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn one(
    level: &str,
    request: &Request<Payload>,
    index: Option<usize>,
    began: jiff::Timestamp,
) -> Row {
    let number = |value: Option<i64>| value.unwrap_or(-1).to_string();
    // As Go shows a time that is not set.
    let at = |time: Option<Duration>| match time {
        Some(time) => {
            (began + jiff::SignedDuration::try_from(time).unwrap_or_default()).to_string()
        }
        None => "0001-01-01T00:00:00Z".to_owned(),
    };
    vec![
        level.to_owned(),
        request.payload.schema.to_string(),
        number(request.queue.map(i64::from)),
        number(index.and_then(|index| i64::try_from(index).ok())),
        request.payload.flow().to_owned(),
        at(Some(request.arrived)),
        request.width.initial.to_string(),
        request.width.lasting.to_string(),
        format!("{:?}", request.width.lingering),
        at(request.started),
    ]
}

fn details(payload: &Payload) -> Row {
    let info = &payload.info;
    let version = match info.group.as_str() {
        "" => info.version.clone(),
        group => format!("{group}/{}", info.version),
    };
    vec![
        payload.user.name.clone(),
        info.verb.clone(),
        info.path.clone(),
        info.namespace.clone(),
        info.name.clone(),
        version,
        info.resource.clone(),
        info.subresource.clone(),
    ]
}

/// Columns with a comma behind each but the last, padded so that they stand below each other.
fn aligned(rows: &[Row]) -> String {
    const WIDTH_MIN: usize = 8;
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let lengths = rows.iter().filter_map(|row| row.get(column));
        let longest = lengths.map(|text| text.chars().count() + 2).max();
        longest.unwrap_or(0).max(WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (column, text) in row.iter().enumerate() {
            if column + 1 == columns {
                out.push_str(text);
            } else {
                let width = widths[column];
                out.push_str(&format!("{:<width$}", format!("{text},")));
            }
        }
        out.push('\n');
    }
    out
}
