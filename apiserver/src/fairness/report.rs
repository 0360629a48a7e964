//! `apiserver_flowcontrol_*`, with upstream's names.

use super::Fairness;
use super::state::{Level, Route};
use super::stats::Stats;
use crate::metrics::text::Text;
use coracle_api::exposition::histogram::Sizes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

type SizesOf = fn(&Stats) -> &Sizes;
type Labels<'a> = [(&'a str, &'a str); 2];

impl Fairness {
    pub fn text(&self, text: &mut Text) {
        let inqueue = "apiserver_current_inqueue_requests";
        text.family(
            inqueue,
            "gauge",
            "Requests that wait for a seat right now, by kind.",
        );
        for (kind, is_write) in [("mutating", true), ("readOnly", false)] {
            let count = self.waiting(is_write).load(Ordering::Relaxed);
            text.sample(inqueue, &[("request_kind", kind)], count);
        }
        let state = self.state();
        let levels: Vec<&Arc<Level>> = state.levels.values().collect();
        level_text(text, &levels);
        let name = "apiserver_flowcontrol_seat_fair_frac";
        let help = "Part of its target that each priority level got when seats were lent last.";
        text.family(name, "gauge", help);
        text.sample(name, &[], *state.fair_fraction.lock());
        schema_text(text, &state.routes);
    }
}

fn level_text(text: &mut Text, levels: &[&Arc<Level>]) {
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&super::state::Inside) -> f64| {
        let name = format!("apiserver_flowcontrol_{name}");
        text.family(&name, "gauge", help);
        for level in levels {
            let value = value(&level.inside.lock());
            text.sample(&name, &[("priority_level", &level.name)], value);
        }
    };
    gauge(
        "nominal_limit_seats",
        "Seats of each priority level by its shares.",
        &|level| level.seats.nominal.into(),
    );
    gauge(
        "lower_limit_seats",
        "Seats that each priority level never lends.",
        &|level| level.seats.least.into(),
    );
    gauge(
        "upper_limit_seats",
        "Seats of each priority level with all that it may borrow.",
        &|level| level.seats.most.into(),
    );
    gauge(
        "current_limit_seats",
        "Seats of each priority level right now.",
        &|level| level.set.limit().into(),
    );
    gauge(
        "demand_seats_high_watermark",
        "Most seats that each priority level could have used in the last period of lending.",
        &|level| level.demand.high_watermark.into(),
    );
    gauge(
        "demand_seats_average",
        "Mean over time of the seats that each priority level could have used in the last period.",
        &|level| level.demand.average,
    );
    gauge(
        "demand_seats_stdev",
        "Standard deviation of the seats that each priority level could have used.",
        &|level| level.demand.deviation,
    );
    gauge(
        "demand_seats_smoothed",
        "Demand for seats, smoothed over periods.",
        &|level| level.demand.smoothed,
    );
    gauge(
        "target_seats",
        "Seats that each priority level should get.",
        &|level| level.target,
    );
    gauge(
        "current_r",
        "Virtual time of each priority level, in seat-seconds.",
        &|level| level.set.r_seconds(),
    );
}

fn schema_text(text: &mut Text, routes: &[Arc<Route>]) {
    rejected_text(text, routes);
    let mut counter = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Stats) -> i64| {
        let name = format!("apiserver_flowcontrol_{name}");
        text.family(&name, kind, help);
        for route in routes {
            text.sample(&name, &labels(route), value(&route.stats));
        }
    };
    let now = |value: &AtomicI64| value.load(Ordering::Relaxed);
    counter(
        "dispatched_requests_total",
        "counter",
        "Number of requests that got a seat.",
        &|stats| stats.dispatched.load(Ordering::Relaxed).cast_signed(),
    );
    counter(
        "current_inqueue_requests",
        "gauge",
        "Number of requests that wait in queues.",
        &|stats| now(&stats.waiting),
    );
    counter(
        "current_inqueue_seats",
        "gauge",
        "Number of seats that requests in queues wait for.",
        &|stats| now(&stats.waiting_seats),
    );
    counter(
        "current_executing_requests",
        "gauge",
        "Number of requests that hold seats.",
        &|stats| now(&stats.running),
    );
    counter(
        "current_executing_seats",
        "gauge",
        "Number of seats that requests hold.",
        &|stats| now(&stats.running_seats),
    );
    histogram_text(text, routes);
}

fn rejected_text(text: &mut Text, routes: &[Arc<Route>]) {
    let name = "apiserver_flowcontrol_rejected_requests_total";
    text.family(name, "counter", "Number of requests that got no seat.");
    for route in routes {
        let reasons: [(&str, &AtomicU64); 4] = [
            ("cancelled", &route.stats.cancelled),
            ("concurrency-limit", &route.stats.no_seat),
            ("queue-full", &route.stats.queue_full),
            ("time-out", &route.stats.timed_out),
        ];
        for (reason, count) in reasons {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let [schema, level] = labels(route);
                text.sample(name, &[schema, level, ("reason", reason)], count);
            }
        }
    }
}

fn histogram_text(text: &mut Text, routes: &[Arc<Route>]) {
    let waited = "apiserver_flowcontrol_request_wait_duration_seconds";
    text.family(waited, "histogram", "Time that requests spent in a queue.");
    for route in routes {
        let [schema, level] = labels(route);
        for (execute, durations) in [
            ("false", &route.stats.waited_in_vain),
            ("true", &route.stats.waited_and_ran),
        ] {
            if durations.count() > 0 {
                durations.text(text, waited, &[("execute", execute), schema, level]);
            }
        }
    }
    let ran = "apiserver_flowcontrol_request_execution_seconds";
    let help = "Time that requests held seats, of a watch until it has begun.";
    text.family(ran, "histogram", help);
    for route in routes {
        let [schema, level] = labels(route);
        for (kind, durations) in [
            ("regular", &route.stats.ran),
            ("watch", &route.stats.watches_began),
        ] {
            if durations.count() > 0 {
                durations.text(text, ran, &[schema, level, ("type", kind)]);
            }
        }
    }
    let sizes: [(&str, &str, SizesOf); 2] = [
        (
            "apiserver_flowcontrol_request_queue_length_after_enqueue",
            "Length of a queue with the request that joined it.",
            |stats| &stats.queue_lengths,
        ),
        (
            "apiserver_flowcontrol_work_estimated_seats",
            "Seats that requests were guessed to need.",
            |stats| &stats.widths,
        ),
    ];
    for (name, help, sizes) in sizes {
        text.family(name, "histogram", help);
        for route in routes {
            let sizes = sizes(&route.stats);
            if sizes.count() > 0 {
                sizes.text(text, name, &labels(route));
            }
        }
    }
}

fn labels(route: &Route) -> Labels<'_> {
    [
        ("flow_schema", &*route.schema.name),
        ("priority_level", &*route.level.name),
    ]
}
