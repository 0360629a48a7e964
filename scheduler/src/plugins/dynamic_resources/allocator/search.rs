//! Tries devices one after the other for one request after the other, and takes back what does not
//! go on.
//!
//! Deep as there are devices to find: at most `RESULTS_MAX` for each claim of the pod. How long it
//! takes is bounded by `Tools::is_late`, which is asked at each step.

use super::asks::{self, Ask};
use super::capacity::{self, Consumed};
use super::constraints::{self, Constraint};
use super::counters::Counters;
use super::outcome::{self, Chosen, Share};
use super::pools::{self, Condition, Pool};
use super::stock::Stock;
use super::{AllocateError, RESULTS_MAX};
use crate::node_info::NodeInfo;
use crate::plugins::dynamic_resources::expressions::{Compiled, device_seen};
use coracle_api::kinds::devices::matching::Expression;
use coracle_api::quantity::Quantity as Amount;
use coracle_client::key_of;
use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceSelector, ResourceClaim, ResourceSlice,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What a search needs of others.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Names of shares: each another.
    pub share_id: &'a dyn Fn() -> String,
    pub is_late: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tools")
    }
}

/// What each of the claims gets on the node, if all get something.
pub fn allocate(
    stock: &Stock,
    compiled: &Compiled,
    claims: &[Arc<ResourceClaim>],
    node: &NodeInfo,
    tools: Tools<'_>,
) -> Result<Vec<AllocationResult>, AllocateError> {
    let pools = pools::gather(stock, node);
    let asks = claims.iter().map(|claim| asks::of_claim(claim, stock));
    let asks: Vec<_> = asks.collect::<Result<_, _>>()?;
    let constraints = claims.iter().map(|claim| constraints::of_claim(claim));
    let mut search = Search {
        stock,
        compiled,
        node,
        claims,
        tools,
        candidates: candidates(&pools),
        pools: &pools,
        asks: &asks,
        wanted: HashMap::new(),
        selectable: HashMap::new(),
        constraints: constraints.collect::<Result<_, _>>()?,
        counters: pools.iter().map(|_| None).collect(),
        picked: vec![Vec::new(); claims.len()],
        chosen: vec![Vec::new(); claims.len()],
    };
    search.count()?;
    match search.step(Step::default())? {
        Found::Yes => search.results(),
        Found::TooMany => Err(AllocateError::Wrong(
            "allocation max size exceeded".to_owned(),
        )),
        Found::No
            if pools
                .iter()
                .any(|pool| pool.condition == Condition::Invalid) =>
        {
            Err(AllocateError::InvalidPools)
        }
        Found::No => Err(AllocateError::NotEnough),
    }
}

/// A device that may be chosen.
#[derive(Debug)]
struct Candidate<'a> {
    pool: usize,
    slice: &'a ResourceSlice,
    device: &'a Device,
    /// The claims that have it alone in this search, or look after it.
    held_by: Vec<usize>,
    shares: usize,
    promised: Consumed,
}

impl Candidate<'_> {
    fn is_shareable(&self) -> bool {
        self.device.allow_multiple_allocations == Some(true)
    }
}

/// In the order in which they are tried.
fn candidates<'a>(pools: &[Pool<'a>]) -> Vec<Candidate<'a>> {
    let pools = pools.iter().enumerate();
    let slices = pools.flat_map(|(pool, it)| it.here.iter().map(move |slice| (pool, *slice)));
    let devices = slices.flat_map(|(pool, slice)| {
        let devices = pools::devices(slice).iter();
        devices.map(move |device| Candidate {
            pool,
            slice,
            device,
            held_by: Vec::new(),
            shares: 0,
            promised: Consumed::new(),
        })
    });
    devices.collect()
}

/// How many devices an ask takes, and for `All` which.
#[derive(Clone, Debug)]
struct Wanted {
    count: usize,
    all: Option<Arc<[usize]>>,
}

/// Claim, request, alternative.
type Place = (usize, usize, usize);

/// What is to be found next.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    claim: usize,
    request: usize,
    /// `None` until one is decided for.
    alternative: Option<usize>,
    /// How many devices the ask has by now.
    devices: usize,
    /// The first candidate that was not tried for the ask.
    from: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    /// The claim would have more devices than one may.
    TooMany,
}

struct Search<'a, 's> {
    stock: &'a Stock,
    compiled: &'s Compiled,
    node: &'s NodeInfo,
    claims: &'a [Arc<ResourceClaim>],
    tools: Tools<'s>,
    pools: &'s [Pool<'a>],
    candidates: Vec<Candidate<'a>>,
    asks: &'s [Vec<Vec<Ask<'a>>>],
    wanted: HashMap<Place, Wanted>,
    selectable: HashMap<(Place, usize), bool>,
    constraints: Vec<Vec<Constraint<'a>>>,
    /// Of each pool, once somebody asks for them.
    counters: Vec<Option<Counters<'a>>>,
    /// The alternatives decided for, a claim.
    picked: Vec<Vec<usize>>,
    /// A claim: request, alternative, device.
    chosen: Vec<Vec<(usize, usize, Chosen<'a>)>>,
}

impl<'a> Search<'a, '_> {
    fn ask(&self, (claim, request, alternative): Place) -> &Ask<'a> {
        &self.asks[claim][request][alternative]
    }

    fn wrong(&self, (claim, ..): Place, ask: &str, why: &str) -> AllocateError {
        let claim = key_of(&*self.claims[claim]);
        AllocateError::Wrong(format!("claim {claim}, request {ask}: {why}"))
    }

    /// How many devices everything takes, before any is looked for.
    fn count(&mut self) -> Result<(), AllocateError> {
        for (claim, requests) in self.asks.iter().enumerate() {
            let mut least = 0_usize;
            for (request, alternatives) in requests.iter().enumerate() {
                let mut least_of = usize::MAX;
                for alternative in 0..alternatives.len() {
                    let place = (claim, request, alternative);
                    let wanted = self.wanted(place)?;
                    least_of = least_of.min(wanted.count);
                    self.wanted.insert(place, wanted);
                }
                least = least.saturating_add(least_of);
            }
            if least > RESULTS_MAX {
                let key = key_of(&*self.claims[claim]);
                return Err(AllocateError::Wrong(format!(
                    "claim {key}: number of requested devices {least} exceeds the claim limit of \
                     {RESULTS_MAX}"
                )));
            }
        }
        Ok(())
    }

    fn wanted(&mut self, place: Place) -> Result<Wanted, AllocateError> {
        let ask = &self.asks[place.0][place.1][place.2];
        if let Some(index) = ask.selectors.iter().position(|one| one.cel.is_none()) {
            let claim = key_of(&*self.claims[place.0]);
            return Err(AllocateError::Wrong(format!(
                "claim {claim}, request {}, selector #{index}: CEL expression empty (unsupported \
                 selector type?)",
                ask.short_name()
            )));
        }
        if let Some(count) = ask.count {
            return Ok(Wanted { count, all: None });
        }
        for pool in self.pools {
            let why = match pool.condition {
                Condition::Whole => continue,
                Condition::Incomplete => "being updated",
                Condition::Invalid => "invalid",
            };
            let (driver, name) = (pool.driver, pool.name);
            let why = format!(
                "asks for all devices, but resource pool {driver}/{name} is currently {why}"
            );
            return Err(self.wrong(place, ask.short_name(), &why));
        }
        let mut all = Vec::new();
        for index in 0..self.candidates.len() {
            if self.is_selectable(place, index)? && self.has_capacity(place, index).is_some() {
                all.push(index);
            }
        }
        Ok(Wanted {
            count: all.len(),
            all: Some(all.into()),
        })
    }

    fn step(&mut self, at: Step) -> Result<Found, AllocateError> {
        if (self.tools.is_late)() {
            return Err(AllocateError::Late);
        }
        let Some(requests) = self.asks.get(at.claim) else {
            return Ok(Found::Yes);
        };
        if at.request >= requests.len() {
            let next = Step {
                claim: at.claim + 1,
                ..Step::default()
            };
            // What is too much for another claim is no matter of this one's alternatives.
            let found = self.step(next)?;
            return Ok(if found == Found::Yes {
                found
            } else {
                Found::No
            });
        }
        match at.alternative {
            None => self.alternatives(at, requests[at.request].len()),
            Some(alternative) => self.next_device(at, (at.claim, at.request, alternative)),
        }
    }

    /// The first alternative with which all the rest can be found.
    fn alternatives(&mut self, at: Step, count: usize) -> Result<Found, AllocateError> {
        let mut is_too_many = true;
        for alternative in 0..count {
            self.picked[at.claim].truncate(at.request);
            self.picked[at.claim].push(alternative);
            let step = Step {
                alternative: Some(alternative),
                ..at
            };
            match self.step(step)? {
                Found::Yes => return Ok(Found::Yes),
                Found::No => is_too_many = false,
                Found::TooMany => {}
            }
        }
        Ok(if is_too_many {
            Found::TooMany
        } else {
            Found::No
        })
    }

    fn next_device(&mut self, at: Step, place: Place) -> Result<Found, AllocateError> {
        let wanted = self.wanted[&place].clone();
        if wanted.all.is_some() && wanted.count == 0 {
            return Ok(Found::No);
        }
        if at.devices >= wanted.count {
            return self.step(Step {
                claim: at.claim,
                request: at.request + 1,
                ..Step::default()
            });
        }
        let sum = self.chosen[at.claim].len() + wanted.count - at.devices;
        if sum > RESULTS_MAX {
            return Ok(Found::TooMany);
        }
        if let Some(all) = wanted.all {
            return self.one_device(at, place, all[at.devices], true);
        }
        for index in at.from..self.candidates.len() {
            if self.is_free(place, index) && self.is_selectable(place, index)? {
                let found = self.one_device(at, place, index, false)?;
                // Where there are too many, another device makes it no fewer.
                if found != Found::No {
                    return Ok(found);
                }
            }
        }
        Ok(Found::No)
    }

    /// Takes a device, and goes on from there; takes it back where that leads nowhere.
    fn one_device(
        &mut self,
        at: Step,
        place: Place,
        index: usize,
        must: bool,
    ) -> Result<Found, AllocateError> {
        let Some(took) = self.take(place, index, must)? else {
            return Ok(Found::No);
        };
        let found = self.step(Step {
            devices: at.devices + 1,
            from: index + 1,
            ..at
        })?;
        if found != Found::Yes {
            self.give_back(place, index, took);
        }
        Ok(found)
    }

    fn is_free(&self, place: Place, index: usize) -> bool {
        let one = &self.candidates[index];
        if self.ask(place).is_admin {
            return !one.held_by.contains(&place.0);
        }
        let used = self.used(index);
        one.held_by.is_empty() && used.is_none_or(|used| !used.is_whole)
    }

    fn used(&self, index: usize) -> Option<&'a super::stock::Use> {
        let one = &self.candidates[index];
        let pool = &self.pools[one.pool];
        self.stock.used(pool.driver, pool.name, &one.device.name)
    }

    fn has_capacity(&self, place: Place, index: usize) -> Option<Consumed> {
        let one = &self.candidates[index];
        let asked = self.ask(place).capacity;
        capacity::taken(one.device, asked, self.used(index), &one.promised)
    }

    /// Whether class and request select the device, and the device is for the node.
    fn is_selectable(&mut self, place: Place, index: usize) -> Result<bool, AllocateError> {
        if let Some(known) = self.selectable.get(&(place, index)) {
            return Ok(*known);
        }
        let one = &self.candidates[index];
        let ask = self.ask(place);
        let class = ask.class.metadata.name.as_deref().unwrap_or_default();
        let of_class = ask.class.spec.selectors.as_deref().unwrap_or_default();
        let is_it = self.selected(of_class, one, || format!("class {class}"))?
            && self.selected(ask.selectors, one, || {
                format!("claim {}", key_of(&*self.claims[place.0]))
            })?
            && (one.slice.spec.per_device_node_selection != Some(true)
                || pools::device_matches(self.node, one.device));
        self.selectable.insert((place, index), is_it);
        Ok(is_it)
    }

    fn selected(
        &self,
        selectors: &[DeviceSelector],
        one: &Candidate<'_>,
        whose: impl Fn() -> String,
    ) -> Result<bool, AllocateError> {
        let wrong = |index: usize, what: &str, why: &str| {
            let whose = whose();
            AllocateError::Wrong(format!(
                "{whose}: selector #{index}: CEL {what} error: {why}"
            ))
        };
        let seen = device_seen(one.device, &one.slice.spec.driver);
        for (index, selector) in selectors.iter().enumerate() {
            let text = selector.cel.as_ref().map_or("", |cel| &cel.expression);
            let expression: &Expression = match self.compiled.get(text).map(|one| &**one) {
                Some(Ok(expression)) => expression,
                Some(Err(why)) => return Err(wrong(index, "compile", why)),
                None => return Err(wrong(index, "compile", "the expression is not known")),
            };
            let is_selected = expression.matches(&seen);
            if !is_selected.map_err(|why| wrong(index, "runtime", &why))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is taken, and if so, whether its counters are; `must` makes constraints fatal.
    fn take(
        &mut self,
        place: Place,
        index: usize,
        must: bool,
    ) -> Result<Option<Took>, AllocateError> {
        let ask = &self.asks[place.0][place.1][place.2];
        let one = &self.candidates[index];
        let (pool, device, slice) = (one.pool, one.device, one.slice);
        let is_shareable = one.is_shareable();
        let is_kept = ask.is_admin && is_shareable || self.is_free(place, index);
        if !is_kept || !ask.bears_taints(device) {
            return Ok(None);
        }
        let Some(consumed) = self.has_capacity(place, index) else {
            return Ok(None);
        };
        let is_counted =
            is_shareable && (self.used(index).is_some_and(|used| used.is_shared) || one.shares > 0);
        let takes_counters = !is_counted && device.consumes_counters.is_some();
        if takes_counters && !self.counters(pool).take(device) {
            return Ok(None);
        }
        let driver = &slice.spec.driver;
        let constraints = &mut self.constraints[place.0];
        if let Some(end) = constraints
            .iter_mut()
            .position(|one| !one.add(ask, device, driver))
        {
            constraints[..end]
                .iter_mut()
                .for_each(|one| one.remove(ask));
            if takes_counters {
                self.counters(pool).give_back(device);
            }
            if must {
                let device = format!("{driver}/{}/{}", slice.spec.pool.name, device.name);
                let why = format!(
                    "cannot add device {device} because a claim constraint would not be satisfied"
                );
                return Err(self.wrong(place, ask.short_name(), &why));
            }
            return Ok(None);
        }
        let share = is_shareable.then(|| Share {
            id: (self.tools.share_id)(),
            consumed,
        });
        self.hold(place, index, share);
        Ok(Some(Took { takes_counters }))
    }

    fn hold(&mut self, (claim, request, alternative): Place, index: usize, share: Option<Share>) {
        let one = &mut self.candidates[index];
        match &share {
            None => one.held_by.push(claim),
            Some(share) => {
                one.shares += 1;
                for (name, amount) in &share.consumed {
                    let sum = one.promised.entry(name.clone()).or_insert(Amount::ZERO);
                    *sum = sum.plus(*amount);
                }
            }
        }
        let chosen = Chosen {
            slice: one.slice,
            device: one.device,
            share,
        };
        self.chosen[claim].push((request, alternative, chosen));
    }

    fn give_back(&mut self, place: Place, index: usize, took: Took) {
        let ask = &self.asks[place.0][place.1][place.2];
        let constraints = self.constraints[place.0].iter_mut();
        constraints.for_each(|one| one.remove(ask));
        let one = &mut self.candidates[index];
        if let Some((.., Chosen { share, .. })) = self.chosen[place.0].pop() {
            match share {
                None => drop(one.held_by.pop()),
                Some(share) => {
                    one.shares -= 1;
                    for (name, amount) in &share.consumed {
                        if let Some(sum) = one.promised.get_mut(name) {
                            *sum = sum.minus(*amount);
                        }
                    }
                    if one.shares == 0 {
                        one.promised.clear();
                    }
                }
            }
        }
        if took.takes_counters {
            let (pool, device) = (one.pool, one.device);
            self.counters(pool).give_back(device);
        }
    }

    fn counters(&mut self, pool: usize) -> &mut Counters<'a> {
        let known = &mut self.counters[pool];
        known.get_or_insert_with(|| Counters::of(&self.pools[pool], self.stock))
    }

    fn results(self) -> Result<Vec<AllocationResult>, AllocateError> {
        let claims = self.claims.iter().enumerate();
        let results = claims.map(|(index, claim)| {
            let asks = &self.asks[index];
            let picked = self.picked[index].iter().enumerate();
            let picked: Vec<_> = picked
                .map(|(request, which)| &asks[request][*which])
                .collect();
            let chosen = self.chosen[index].iter();
            let met = chosen.map(|(request, which, one)| (&asks[*request][*which], one.clone()));
            outcome::result(claim, &picked, &met.collect(), &self.node.name)
        });
        results.collect()
    }
}

/// What there is to give back beside the device itself.
#[derive(Clone, Copy, Debug)]
struct Took {
    takes_counters: bool,
}
