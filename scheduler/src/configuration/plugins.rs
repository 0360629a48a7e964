//! Which plugins take part where: those of all points, changed by what the file says of each point.

use super::API_VERSION;
use super::document::{Plugin, PluginSet, Plugins};
use crate::framework::Point;
use crate::plugins::registry::{self, Plan, ROWS, Row};
use coracle_api::field::{ErrorList, FieldError, Path};
use std::collections::BTreeMap;

/// Plugins of versions before this one.
const REMOVED: [&str; 4] = [
    "AzureDiskLimits",
    "CinderLimits",
    "EBSLimits",
    "GCEPDLimits",
];
/// Stands for all plugins in a list of disabled ones.
const ALL: &str = "*";

/// Changes what a plan for all plugins has, as the file says. An error ends it in upstream's words.
pub fn choose(
    written: Option<&Plugins>,
    path: &Path,
    plan: &mut Plan,
    errors: &mut ErrorList,
) -> Result<(), String> {
    let none = Plugins::default();
    let written = written.unwrap_or(&none);
    refuse_removed(written, path, errors);
    if !errors.is_empty() {
        return Ok(());
    }
    choose_known(written, plan).map_err(|why| {
        let name = &plan.scheduler_name;
        format!("initializing profiles: creating profile for scheduler name {name}: {why}")
    })
}

fn refuse_removed(written: &Plugins, path: &Path, errors: &mut ErrorList) {
    let sets = written.sets().into_iter();
    for (name, set) in sets.filter(|(name, _)| *name != "multiPoint") {
        for (index, plugin) in set.enabled.iter().enumerate() {
            if REMOVED.contains(&plugin.name.as_str()) {
                let path = path.child(name).child("enabled").index(index);
                errors.push(removed(&path, &plugin.name));
            }
        }
    }
}

pub fn removed(path: &Path, name: &str) -> FieldError {
    let why = format!(
        "was invalid in version {API_VERSION:?} (KubeSchedulerConfiguration is version \
         {API_VERSION:?})"
    );
    FieldError::invalid(path, name, why)
}

pub fn is_removed(name: &str) -> bool {
    REMOVED.contains(&name)
}

fn choose_known(written: &Plugins, plan: &mut Plan) -> Result<(), String> {
    let everywhere = everywhere(&written.multi_point);
    let sets = written.sets();
    for (point, (_, set)) in Point::ALL.into_iter().zip(&sets) {
        check_enabled(point, set)?;
    }
    for (point, (_, set)) in Point::ALL.into_iter().zip(&sets) {
        plan.by_point[point as usize] = at(point, set, &everywhere)?;
    }
    let count = |point: Point| plan.by_point[point as usize].len();
    let name = &plan.scheduler_name;
    if count(Point::QueueSort) != 1 {
        let count = count(Point::QueueSort);
        return Err(format!(
            "only one queue sort plugin required for profile with scheduler name {name:?}, but \
             got {count}"
        ));
    }
    if count(Point::Bind) == 0 {
        return Err(format!(
            "at least one bind plugin is needed for profile with scheduler name {name:?}"
        ));
    }
    plan.weights = weights(&written.score.enabled, &everywhere);
    Ok(())
}

/// The default plugins in their order, without those disabled, replaced by those named anew, then
/// whoever is named beside them.
fn everywhere(written: &PluginSet) -> Vec<Plugin> {
    let is_disabled = |name: &str| written.disabled.iter().any(|one| one.name == name);
    let mut chosen = Vec::new();
    let mut replaced = Vec::new();
    if !is_disabled(ALL) {
        for row in ROWS.iter().filter(|row| !is_disabled(row.name)) {
            let anew = written.enabled.iter().rposition(|one| one.name == row.name);
            replaced.extend(anew);
            chosen.push(match anew {
                Some(index) => written.enabled[index].clone(),
                None => Plugin::new(row.name, row.weight),
            });
        }
    }
    let others = written.enabled.iter().enumerate();
    let others = others.filter(|(index, _)| !replaced.contains(index));
    chosen.extend(others.map(|(_, plugin)| plugin.clone()));
    chosen
}

fn found(point: Point, name: &str) -> Result<&'static Row, String> {
    registry::by_name(name).ok_or_else(|| format!("{}Plugin {name:?} does not exist", point.name()))
}

fn twice(point: Point, name: &str) -> String {
    format!(
        "plugin {name:?} already registered as \"{}Plugin\"",
        point.name()
    )
}

/// What is named at a point must be there, take part at it, and be named once.
fn check_enabled(point: Point, set: &PluginSet) -> Result<(), String> {
    let mut seen = Vec::new();
    for plugin in &set.enabled {
        let name = plugin.name.as_str();
        let row = found(point, name)?;
        if !row.points.contains(&point) {
            let point = point.name();
            return Err(format!(
                "plugin {name:?} does not extend {point}Plugin plugin"
            ));
        }
        if seen.contains(&name) {
            return Err(twice(point, name));
        }
        seen.push(name);
    }
    Ok(())
}

/// First who is named at this point as well as everywhere, then who is named everywhere, then the
/// rest of who is named at this point.
fn at(point: Point, set: &PluginSet, everywhere: &[Plugin]) -> Result<Vec<&'static str>, String> {
    let here: Vec<&'static str> = set
        .enabled
        .iter()
        .filter_map(|plugin| Some(registry::by_name(&plugin.name)?.name))
        .collect();
    let is_disabled = |name: &str| set.disabled.iter().any(|one| one.name == name);
    if is_disabled(ALL) {
        return Ok(here);
    }
    let (mut both, mut general) = (Vec::new(), Vec::new());
    for plugin in everywhere {
        let row = found(point, &plugin.name)?;
        if !row.points.contains(&point) || is_disabled(row.name) {
            continue;
        }
        if here.contains(&row.name) {
            both.push(row.name);
        } else if general.contains(&row.name) {
            return Err(twice(point, row.name));
        } else {
            general.push(row.name);
        }
    }
    let first = here.iter().filter(|name| both.contains(name)).copied();
    let last = here.iter().filter(|name| !both.contains(name)).copied();
    Ok(first.chain(general).chain(last).collect())
}

/// What a point says counts more than what is said of all; no weight is 1.
fn weights(here: &[Plugin], everywhere: &[Plugin]) -> BTreeMap<&'static str, i64> {
    let mut weights = BTreeMap::new();
    for plugin in here.iter().chain(everywhere) {
        if let Some(row) = registry::by_name(&plugin.name) {
            let weight = plugin.weight.filter(|weight| *weight != 0).unwrap_or(1);
            weights.entry(row.name).or_insert(i64::from(weight));
        }
    }
    weights
}
