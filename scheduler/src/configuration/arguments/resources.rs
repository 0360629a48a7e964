//! Arguments of NodeResourcesFit and NodeResourcesBalancedAllocation.

use super::super::document::{Unknown, note};
use super::{Written, known};
use crate::framework::SCORE_MAX;
use crate::plugins::node_resources::{Resource, Weighted, default_resources};
use crate::plugins::node_resources_fit::{Args, Point, Scoring, Strategy};
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::names;
use serde::Deserialize;

/// The scores of a curve are written between 0 and this.
const WRITTEN_SCORE_MAX: i64 = 10;
const STRATEGIES: [&str; 3] = [
    "LeastAllocated",
    "MostAllocated",
    "RequestedToCapacityRatio",
];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FitArgs {
    ignored_resources: Vec<String>,
    ignored_resource_groups: Vec<String>,
    scoring_strategy: Option<ScoringStrategy>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScoringStrategy {
    #[serde(rename = "type")]
    strategy: String,
    resources: Vec<ResourceSpec>,
    requested_to_capacity_ratio: Option<Ratio>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ratio {
    shape: Vec<ShapePoint>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ShapePoint {
    utilization: i64,
    score: i64,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceSpec {
    name: String,
    weight: i64,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BalancedArgs {
    resources: Vec<ResourceSpec>,
    #[serde(flatten)]
    unknown: Unknown,
}

fn note_resources(found: &mut Vec<String>, path: &str, resources: &[ResourceSpec]) {
    for (index, one) in resources.iter().enumerate() {
        note(found, &format!("{path}resources[{index}]."), &one.unknown);
    }
}

impl Written for FitArgs {
    fn unknown(&self) -> Vec<String> {
        let mut found = known(&self.unknown);
        if let Some(strategy) = &self.scoring_strategy {
            let path = "scoringStrategy.";
            note(&mut found, path, &strategy.unknown);
            note_resources(&mut found, path, &strategy.resources);
            if let Some(ratio) = &strategy.requested_to_capacity_ratio {
                let path = format!("{path}requestedToCapacityRatio.");
                note(&mut found, &path, &ratio.unknown);
                for (index, point) in ratio.shape.iter().enumerate() {
                    note(
                        &mut found,
                        &format!("{path}shape[{index}]."),
                        &point.unknown,
                    );
                }
            }
        }
        found
    }
}

impl Written for BalancedArgs {
    fn unknown(&self) -> Vec<String> {
        let mut found = known(&self.unknown);
        note_resources(&mut found, "", &self.resources);
        found
    }
}

/// No weight is 1.
fn weighted(written: &[ResourceSpec]) -> Vec<Weighted> {
    let weighted = written.iter().map(|one| Weighted {
        resource: Resource::named(&one.name),
        weight: if one.weight == 0 { 1 } else { one.weight },
    });
    weighted.collect()
}

pub fn balanced(args: BalancedArgs, path: &Path, errors: &mut ErrorList) -> Vec<Weighted> {
    if args.resources.is_empty() {
        return default_resources();
    }
    let path = path.child("resources");
    for (index, one) in args.resources.iter().enumerate() {
        let before = &args.resources[..index];
        if before.iter().any(|other| other.name == one.name) {
            let path = path.index(index).child("name");
            errors.push(FieldError::duplicate(&path, one.name.as_str()));
        }
        if !matches!(one.weight, 0 | 1) {
            let path = path.index(index).child("weight");
            errors.push(FieldError::invalid(&path, one.weight, "must be 1"));
        }
    }
    weighted(&args.resources)
}

pub fn fit(args: FitArgs, path: &Path, errors: &mut ErrorList) -> Args {
    for (index, name) in args.ignored_resources.iter().enumerate() {
        check_name(name, &path.child("ignoredResources").index(index), errors);
    }
    for (index, group) in args.ignored_resource_groups.iter().enumerate() {
        let path = path.child("ignoredResourceGroups").index(index);
        if group.contains('/') {
            let why = "resource group name can't contain '/'";
            errors.push(FieldError::invalid(&path, group.as_str(), why));
        }
        check_name(group, &path, errors);
    }
    let scoring = match &args.scoring_strategy {
        None => Scoring::default(),
        Some(written) => scoring(written, &path.child("scoringStrategy"), errors),
    };
    Args {
        ignored_resources: args.ignored_resources,
        ignored_resource_groups: args.ignored_resource_groups,
        scoring,
    }
}

fn check_name(name: &str, path: &Path, errors: &mut ErrorList) {
    let faults = names::qualified_name(name).into_iter();
    errors.extend(faults.map(|fault| FieldError::invalid(path, name, fault)));
}

fn scoring(written: &ScoringStrategy, path: &Path, errors: &mut ErrorList) -> Scoring {
    let ratio = written.requested_to_capacity_ratio.as_ref();
    let of_ratio = path.child("requestedToCapacityRatio");
    for (index, one) in written.resources.iter().enumerate() {
        if !(0..=100).contains(&one.weight) {
            let path = path.child("resources").index(index).child("weight");
            let why = format!(
                "resource weight of {} not in valid range (0, 100]",
                one.name
            );
            errors.push(FieldError::invalid(&path, one.weight, why));
        }
    }
    let strategy = match written.strategy.as_str() {
        "LeastAllocated" => Strategy::LeastAllocated,
        "MostAllocated" => Strategy::MostAllocated,
        "RequestedToCapacityRatio" => {
            if ratio.is_none() {
                let why = "must be specified when type is RequestedToCapacityRatio";
                errors.push(FieldError::required(&of_ratio, why));
            }
            let points = ratio.map(|ratio| curve(&ratio.shape, &of_ratio.child("shape"), errors));
            Strategy::RequestedToCapacityRatio(points.unwrap_or_default())
        }
        other => {
            let path = path.child("type");
            errors.push(FieldError::not_supported(&path, other, &STRATEGIES));
            Strategy::LeastAllocated
        }
    };
    if ratio.is_some() && !matches!(strategy, Strategy::RequestedToCapacityRatio(_)) {
        let why = "must be nil when type is not RequestedToCapacityRatio";
        errors.push(FieldError::forbidden(&of_ratio, why));
    }
    let resources = if written.resources.is_empty() {
        default_resources()
    } else {
        weighted(&written.resources)
    };
    Scoring {
        strategy,
        resources,
    }
}

fn curve(shape: &[ShapePoint], path: &Path, errors: &mut ErrorList) -> Vec<Point> {
    if shape.is_empty() {
        let why = "at least one point must be specified";
        errors.push(FieldError::required(path, why));
    }
    let mut pairs = shape.iter().zip(shape.iter().skip(1)).enumerate();
    let unsorted = pairs.find(|(_, (one, next))| one.utilization >= next.utilization);
    if let Some((index, (_, next))) = unsorted {
        let path = path.index(index + 1).child("utilization");
        let why = "values must be sorted in increasing order";
        errors.push(FieldError::invalid(&path, next.utilization, why));
    }
    for (index, point) in shape.iter().enumerate() {
        let values = [
            ("utilization", point.utilization, 100),
            ("score", point.score, WRITTEN_SCORE_MAX),
        ];
        for (name, value, max) in values {
            if !(0..=max).contains(&value) {
                let path = path.index(index).child(name);
                let why = format!("not in valid range [0, {max}]");
                errors.push(FieldError::invalid(&path, value, why));
            }
        }
    }
    let points = shape.iter().map(|point| Point {
        utilization: point.utilization,
        score: point.score * (SCORE_MAX / WRITTEN_SCORE_MAX),
    });
    points.collect()
}
