//! What the quotas of a namespace come to.

use std::borrow::Cow;
use std::collections::BTreeSet;

use coracle_api::amounts::Amounts;
use coracle_api::object::Object;
use coracle_api::quantity::Quantity;
use coracle_api::quota::{DeviceClasses, Evaluator, Quota, Surroundings};

use super::NewStatus;

pub(super) struct Tally<'a> {
    quotas: &'a [Quota],
    classes: &'a DeviceClasses,
    /// Seconds since 1970.
    now: i64,
    /// What was counted, a quota.
    used: Vec<Amounts>,
    /// The names that were, a quota: what nothing counts keeps what stands there.
    counted: Vec<BTreeSet<String>>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(quotas: &'a [Quota], classes: &'a DeviceClasses, now: i64) -> Self {
        Self {
            quotas,
            classes,
            now,
            used: vec![Amounts::default(); quotas.len()],
            counted: vec![BTreeSet::new(); quotas.len()],
        }
    }

    /// Objects of a kind are counted from here on: none is an amount too.
    pub(super) fn begin(&mut self, evaluator: &Evaluator) {
        for ((quota, used), counted) in self
            .quotas
            .iter()
            .zip(&mut self.used)
            .zip(&mut self.counted)
        {
            let names = quota.spec_hard.names();
            for name in names.filter(|name| evaluator.counts(name, self.classes)) {
                counted.insert(name.to_owned());
                if !used.has(name) {
                    used.set(name, Quantity::ZERO);
                }
            }
        }
    }

    pub(super) fn add(&mut self, evaluator: &Evaluator, objects: &[Object]) {
        let around = Surroundings {
            now: self.now,
            classes: self.classes,
            pod: &|_, _| None,
            claims: &|_| Vec::new().into(),
        };
        add(self.quotas, &mut self.used, evaluator, objects, &around);
    }

    /// So many objects that are counted and nothing else; they are in no scope.
    pub(super) fn add_count(&mut self, evaluator: &Evaluator, count: usize) {
        self.begin(evaluator);
        let names = evaluator.usage_of_each();
        let mut usage = Amounts::default();
        for name in names.names() {
            usage.set_count(name, count);
        }
        for (quota, used) in self.quotas.iter().zip(&mut self.used) {
            if quota.scopes.is_empty() {
                used.add(&usage);
            }
        }
    }

    /// All claims of devices of the namespace, and the pods that they were made for.
    pub(super) fn add_claims(&mut self, claims: &[Object], pods: &[Object]) {
        let evaluator = Evaluator::ResourceClaims;
        self.begin(&evaluator);
        let around = Surroundings {
            now: self.now,
            classes: self.classes,
            pod: &|_, name| {
                let pod = pods.iter().find(|pod| pod.name() == name);
                pod.map(Cow::Borrowed)
            },
            claims: &|_| Cow::Borrowed(claims),
        };
        add(self.quotas, &mut self.used, &evaluator, claims, &around);
    }

    /// The statuses, in the order of the quotas; `None` where it is right already.
    pub(super) fn statuses(self) -> impl Iterator<Item = Option<NewStatus>> {
        let all = self.quotas.iter().zip(self.used).zip(self.counted);
        all.map(|((quota, used), counted)| status(quota, &used, &counted))
    }
}

fn add(
    quotas: &[Quota],
    used: &mut [Amounts],
    evaluator: &Evaluator,
    objects: &[Object],
    around: &Surroundings<'_>,
) {
    for object in objects {
        let usage = evaluator.usage(object, around);
        for (quota, used) in quotas.iter().zip(&mut *used) {
            if quota.is_about(evaluator, object) {
                used.add(&usage);
            }
        }
    }
}

fn status(quota: &Quota, used: &Amounts, counted: &BTreeSet<String>) -> Option<NewStatus> {
    let hard = quota.spec_hard.clone();
    let mut all = quota.used.only(|name| hard.has(name));
    for (name, amount) in used.iter().filter(|(name, _)| counted.contains(*name)) {
        all.set(name, amount);
    }
    let comes_into_force = hard != quota.hard;
    (comes_into_force || all != quota.used).then_some(NewStatus {
        hard,
        used: all,
        comes_into_force,
    })
}
