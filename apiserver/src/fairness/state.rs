//! What the two kinds of objects come to: schemas in their order, and levels with seats and queues.
//!
//! A new state is made from all objects at once. Levels live on from state to state by their name;
//! one whose object is gone stays until its last request ended, and shares seats until then.

use super::borrow::{Claim, divide};
use super::demand::Demand;
use super::flow_schema::{CATCH_ALL, EXEMPT, FlowSchema};
use super::level::{LevelSpec, Seats};
use super::queue_set::QueueSet;
use super::retry_after::Refusals;
use super::stats::Stats;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use coracle_api::object::Object;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a level keeps of a request.
#[derive(Debug)]
pub struct Payload {
    /// To be told that it is its turn.
    pub waker: Option<oneshot::Sender<()>>,
    pub schema: Arc<str>,
    pub user: Arc<User>,
    pub info: Arc<RequestInfo>,
    /// True when flows are told apart by user, false when by namespace.
    pub flow_is_user: Option<bool>,
}

#[derive(Debug)]
pub struct Level {
    pub name: Arc<str>,
    pub inside: Mutex<Inside>,
    pub refusals: Mutex<Refusals>,
}

#[derive(Debug)]
pub struct Inside {
    pub spec: LevelSpec,
    pub seats: Seats,
    pub demand: Demand,
    pub target: f64,
    pub set: QueueSet<Payload>,
    /// Its object is gone.
    pub is_quiescing: bool,
}

/// A schema and the level that it leads to.
#[derive(Debug)]
pub struct Route {
    pub schema: FlowSchema,
    pub level: Arc<Level>,
    pub level_uid: http::HeaderValue,
    pub width_max: u32,
    pub stats: Arc<Stats>,
}

#[derive(Debug)]
pub struct State {
    pub routes: Vec<Arc<Route>>,
    pub levels: BTreeMap<Arc<str>, Arc<Level>>,
    /// All seats that are given out.
    pub seats: u32,
    pub fair_fraction: Mutex<f64>,
}

/// Upstream's two schemas without which no request could be placed.
fn mandatory_schema(name: &str) -> FlowSchema {
    let (precedence, groups): (i64, &[&str]) = match name {
        EXEMPT => (1, &["system:masters"]),
        _ => (10_000, &["system:unauthenticated", "system:authenticated"]),
    };
    let subjects: Vec<_> = groups
        .iter()
        .map(|group| json!({ "kind": "Group", "group": { "name": group } }))
        .collect();
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": name },
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": { "name": name },
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{
                "subjects": subjects,
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                    "namespaces": ["*"], "clusterScope": true,
                }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            }],
        },
    });
    FlowSchema::of(&Object::from_value(object).expect("a literal object is one"))
}

impl State {
    /// What is so before anything is read: everybody but `system:masters` shares `catch-all`.
    pub fn initial(total: u32, now: Duration) -> Self {
        let nothing = Self {
            routes: Vec::new(),
            levels: BTreeMap::new(),
            seats: 0,
            fair_fraction: Mutex::new(0.0),
        };
        nothing.next(Vec::new(), Vec::new(), total, now)
    }

    /// The state after this one. Schemas whose level is missing are left out.
    pub fn next(
        &self,
        mut specs: Vec<LevelSpec>,
        mut schemas: Vec<FlowSchema>,
        total: u32,
        now: Duration,
    ) -> Self {
        for name in [EXEMPT, CATCH_ALL] {
            if !specs.iter().any(|spec| &*spec.name == name) {
                specs.push(LevelSpec::mandatory(name));
            }
            if !schemas.iter().any(|schema| &*schema.name == name) {
                schemas.push(mandatory_schema(name));
            }
        }
        let mut levels = BTreeMap::new();
        for spec in specs {
            let name = Arc::clone(&spec.name);
            levels.insert(name, self.level(spec, now));
        }
        for (name, level) in &self.levels {
            let stays = !levels.contains_key(name) && !level.inside.lock().set.is_idle();
            if stays {
                level.inside.lock().is_quiescing = true;
                levels.insert(Arc::clone(name), Arc::clone(level));
            }
        }
        let seats = give_seats(&levels, total, now);
        schemas.sort_by(|a, b| a.order().cmp(&b.order()));
        let routes = schemas
            .into_iter()
            .filter_map(|schema| self.route(schema, &levels))
            .collect();
        let state = Self {
            routes,
            levels,
            seats,
            fair_fraction: Mutex::new(0.0),
        };
        state.lend(now);
        state
    }

    fn level(&self, spec: LevelSpec, now: Duration) -> Arc<Level> {
        if let Some(known) = self.levels.get(&spec.name) {
            let mut inside = known.inside.lock();
            inside.is_quiescing = false;
            if inside.spec != spec {
                inside.set.set_discipline(now, spec.discipline);
                inside.spec = spec;
            }
            drop(inside);
            return Arc::clone(known);
        }
        let set = QueueSet::new(spec.discipline, 0, now);
        Arc::new(Level {
            name: Arc::clone(&spec.name),
            inside: Mutex::new(Inside {
                spec,
                seats: Seats::default(),
                demand: Demand::default(),
                target: 0.0,
                set,
                is_quiescing: false,
            }),
            refusals: Mutex::default(),
        })
    }

    fn route(
        &self,
        schema: FlowSchema,
        levels: &BTreeMap<Arc<str>, Arc<Level>>,
    ) -> Option<Arc<Route>> {
        let level = levels.get(schema.level.as_str())?;
        let inside = level.inside.lock();
        if inside.is_quiescing {
            return None;
        }
        let known = self
            .routes
            .iter()
            .find(|route| route.schema.name == schema.name && route.level.name == level.name);
        let stats = known
            .map(|route| Arc::clone(&route.stats))
            .unwrap_or_default();
        Some(Arc::new(Route {
            schema,
            level: Arc::clone(level),
            level_uid: inside.spec.uid.clone(),
            width_max: inside.seats.width_max,
            stats,
        }))
    }

    pub fn classify(&self, user: &User, info: &RequestInfo) -> &Arc<Route> {
        self.routes
            .iter()
            .find(|route| route.schema.matches(user, info))
            .or_else(|| {
                let mut routes = self.routes.iter();
                routes.find(|route| &*route.schema.name == CATCH_ALL)
            })
            .unwrap_or_else(|| {
                self.routes
                    .last()
                    .expect("the mandatory schemas are always there")
            })
    }

    /// Moves seats to where they are needed. Upstream's rules.
    pub fn lend(&self, now: Duration) {
        let mut left = f64::from(self.seats);
        let (mut claims, mut limited) = (Vec::new(), Vec::new());
        let (mut least_sum, mut needed_sum) = (0.0, 0.0);
        for level in self.levels.values() {
            let mut inside = level.inside.lock();
            let observed = inside.set.take_demand(now);
            inside.demand.update(&observed);
            let (least, needed) = (inside.seats.least, inside.demand.high_watermark);
            if inside.spec.is_exempt() {
                let taken = least.max(needed);
                left -= f64::from(taken);
                inside.target = f64::from(taken);
                inside.set.set_limit(now, taken);
                continue;
            }
            let lower = f64::from(least.max(needed.min(inside.seats.nominal)));
            let claim = Claim {
                lower,
                upper: f64::from(inside.seats.most),
                target: lower.max(inside.demand.smoothed),
            };
            inside.target = claim.target;
            least_sum += f64::from(least);
            needed_sum += lower;
            claims.push(claim);
            drop(inside);
            limited.push(level);
        }
        let (given, fraction): (Vec<f64>, f64) = if left <= least_sum {
            (claims.iter().map(|_| 0.0).collect(), 0.0)
        } else if left <= needed_sum {
            let part = (left - least_sum) / (needed_sum - least_sum);
            let given = limited.iter().zip(&claims).map(|(level, claim)| {
                let least = f64::from(level.inside.lock().seats.least);
                least + (claim.lower - least) * part
            });
            (given.collect(), 0.0)
        } else {
            match divide(f64::from(self.seats), &claims) {
                Some(division) => (division.seats, division.fraction),
                // The bounds cannot be met: everybody keeps what they have.
                None => (claims.iter().map(|claim| claim.lower).collect(), 0.0),
            }
        };
        for (level, seats) in limited.into_iter().zip(given) {
            let mut inside = level.inside.lock();
            let seats = (seats.round() as u32).max(inside.seats.least);
            inside.set.set_limit(now, seats);
            inside.wake();
        }
        *self.fair_fraction.lock() = fraction;
    }
}

/// Divides the server's seats by shares; gives the sum of what came of it, which rounding up may
/// make a little more.
fn give_seats(levels: &BTreeMap<Arc<str>, Arc<Level>>, total: u32, now: Duration) -> u32 {
    let shares: u64 = levels
        .values()
        .map(|level| u64::from(level.inside.lock().spec.shares))
        .sum();
    let mut sum = 0;
    for level in levels.values() {
        let mut inside = level.inside.lock();
        inside.seats = inside.spec.seats(total, shares);
        sum += inside.seats.nominal;
        let limit = inside.seats.nominal;
        if inside.set.limit() == 0 {
            inside.set.set_limit(now, limit);
        }
    }
    sum
}

impl Inside {
    /// Tells those whose turn it is. One that went away meanwhile gives its seat back itself.
    pub fn wake(&mut self) {
        while let Some(ticket) = self.set.next_dispatched() {
            let request = self.set.request_mut(ticket);
            if let Some(waker) = request.and_then(|request| request.payload.waker.take()) {
                let _ = waker.send(());
            }
        }
    }
}

impl Payload {
    pub fn flow(&self) -> &str {
        match self.flow_is_user {
            None => "",
            Some(true) => &self.user.name,
            Some(false) => &self.info.namespace,
        }
    }
}

#[cfg(test)]
mod tests;
