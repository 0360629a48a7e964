//! One version of a definition, as it is served: compiled once, and shared by all who use it.

use super::columns::{self, CellPath};
use super::conversion::Conversion;
use super::expressions::Tree;
use super::family::Family;
use crate::json;
use crate::object::Object;
use crate::structural::KnownPatterns;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Fields that a path of a scale may lead through: what is written there is made, however deep.
pub const SCALE_STEPS_MAX: usize = 64;

/// Where a kind has what a Scale shows: steps of field names.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalePaths {
    pub spec_replicas: ScalePath,
    pub status_replicas: ScalePath,
    pub selector: Option<ScalePath>,
}

/// A path as the definition has it, and its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalePath {
    pub text: String,
    pub steps: Vec<String>,
}

impl ScalePath {
    fn of(text: &str) -> Self {
        let steps = text.strip_prefix('.').unwrap_or(text).split('.');
        Self {
            text: text.to_owned(),
            steps: steps.map(str::to_owned).collect(),
        }
    }

    pub fn get<'a>(&self, object: &'a Object) -> Option<&'a Value> {
        let steps: Vec<&str> = self.steps.iter().map(String::as_str).collect();
        object.get(&steps)
    }

    pub fn set(&self, object: &mut Object, value: Value) {
        let steps: Vec<&str> = self.steps.iter().map(String::as_str).collect();
        object.set(&steps, value);
    }
}

#[derive(Debug)]
pub struct Version {
    pub kind: String,
    pub list_kind: String,
    /// `group/version`.
    pub api_version: String,
    /// `group/version` in which objects are stored.
    pub storage_version: String,
    /// Where versions differ by more than their names.
    pub conversion: Option<Conversion>,
    /// The structural schema; null where the definition states none.
    pub schema: Value,
    /// Unknown fields stay, as older definitions may have it.
    pub keeps_unknown: bool,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    pub cells: Vec<CellPath>,
    /// The definition is being deleted: nothing new is taken.
    pub is_terminating: bool,
    pub family: Arc<Family>,
    pub patterns: KnownPatterns,
    /// Tells one schema from another.
    pub fingerprint: u64,
    /// Compiled when first needed; nothing for a schema without rules.
    rules: OnceLock<Option<Tree>>,
}

impl Version {
    /// The served versions of a definition, in its order. Names are those that were accepted.
    pub fn all(definition: &Object) -> Vec<Self> {
        let group = definition.str(&["spec", "group"]);
        let versions = definition.list(&["spec", "versions"]);
        let name = |version: &Value| format!("{group}/{}", json::text(version, "name"));
        let storage = versions.iter().find(|one| json::flag(one, "storage"));
        let storage = storage.map(name).unwrap_or_default();
        let schemas: Vec<(String, &Value)> = versions
            .iter()
            .map(|one| (name(one), json::at(one, &["schema", "openAPIV3Schema"])))
            .collect();
        let family = Arc::new(Family::of(&schemas));
        let served = versions.iter().filter(|one| json::flag(one, "served"));
        served
            .map(|one| {
                let scale = json::at(one, &["subresources", "scale"]);
                Self {
                    kind: definition.str(&["status", "acceptedNames", "kind"]).into(),
                    list_kind: definition
                        .str(&["status", "acceptedNames", "listKind"])
                        .into(),
                    api_version: name(one),
                    storage_version: storage.clone(),
                    conversion: Conversion::of(definition),
                    schema: json::at(one, &["schema", "openAPIV3Schema"]).clone(),
                    keeps_unknown: definition.bool(&["spec", "preserveUnknownFields"]),
                    has_status: json::has(json::get(one, "subresources"), "status"),
                    scale: (scale.is_object() && fits(scale)).then(|| scale_paths(scale)),
                    cells: columns::paths(one),
                    is_terminating: super::condition_is_true(definition, "Terminating"),
                    family: Arc::clone(&family),
                    patterns: KnownPatterns::default(),
                    rules: OnceLock::new(),
                    fingerprint: crate::openapi::fingerprint(
                        format!(
                            "{} {one}",
                            definition.bool(&["spec", "preserveUnknownFields"])
                        )
                        .as_bytes(),
                    ),
                }
            })
            .collect()
    }
}

impl Version {
    pub fn rules(&self) -> Option<&Tree> {
        let rules = self.rules.get_or_init(|| Tree::of(&self.schema));
        rules.as_ref()
    }
}

/// Whether objects can hold what the paths lead to.
fn fits(scale: &Value) -> bool {
    let mut paths = scale
        .as_object()
        .into_iter()
        .flat_map(|paths| paths.values());
    paths.all(|path| {
        path.as_str()
            .is_none_or(|path| steps(path) <= SCALE_STEPS_MAX)
    })
}

/// Fields that a path leads through.
pub fn steps(path: &str) -> usize {
    path.strip_prefix('.').unwrap_or(path).split('.').count()
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let selector = json::text(scale, "labelSelectorPath");
    ScalePaths {
        spec_replicas: ScalePath::of(json::text(scale, "specReplicasPath")),
        status_replicas: ScalePath::of(json::text(scale, "statusReplicasPath")),
        selector: (!selector.is_empty()).then(|| ScalePath::of(selector)),
    }
}
