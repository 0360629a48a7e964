//! What plugins are told: `pluginConfig`.

use super::SECONDS_MAX;
use super::document::{PluginConfig, Unknown, note};
use super::plugins::{is_removed, removed};
use crate::plugins::registry::{self, Arguments};
use coracle_api::field::{ErrorList, FieldError, Path};
use k8s_openapi::api::core::v1::NodeAffinity;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_yaml_ng::Value;
use std::time::Duration;

mod devices; // Of DynamicResources.
mod resources; // Of NodeResourcesFit and NodeResourcesBalancedAllocation.
mod spread; // Of PodTopologySpread.

const GROUP: &str = "kubescheduler.config.k8s.io";

/// Arguments as they are written.
pub(super) trait Written: DeserializeOwned + Default {
    /// Their own fields and, with their paths, those of what is in them.
    fn unknown(&self) -> Vec<String>;
}

/// What all arguments have beside their own fields.
fn known(unknown: &Unknown) -> Vec<String> {
    let mut found = Vec::new();
    note(&mut found, "", unknown);
    found.retain(|field| field != "apiVersion" && field != "kind");
    found
}

/// One entry of `pluginConfig`.
struct Entry<'a> {
    name: &'a str,
    args: Option<&'a Value>,
    profile: usize,
    index: usize,
    path: Path,
}

pub fn read(
    written: &[PluginConfig],
    profile: usize,
    arguments: &mut Arguments,
    errors: &mut ErrorList,
) -> Result<(), String> {
    let list = Path::root("profiles").index(profile).child("pluginConfig");
    let mut seen: Vec<&str> = Vec::new();
    for (index, one) in written.iter().enumerate() {
        let name = one.name.as_str();
        let path = list.index(index);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        seen.push(name);
        if is_removed(name) {
            errors.push(removed(&path, name));
            continue;
        }
        let entry = Entry {
            name,
            args: one.args.as_ref(),
            profile,
            index,
            path: path.child("args"),
        };
        entry.settle(arguments, errors, &path)?;
    }
    Ok(())
}

impl Entry<'_> {
    fn settle(
        &self,
        arguments: &mut Arguments,
        errors: &mut ErrorList,
        path: &Path,
    ) -> Result<(), String> {
        match self.name {
            "InterPodAffinity" => self.inter_pod_affinity(arguments, errors)?,
            "NodeAffinity" => {
                let args: NodeAffinityArgs = self.parsed()?;
                arguments.added_affinity = args.added_affinity.unwrap_or_default();
            }
            "NodeResourcesFit" => {
                let args = self.parsed()?;
                arguments.fit = resources::fit(args, &self.path, errors);
            }
            "NodeResourcesBalancedAllocation" => {
                let args = self.parsed()?;
                arguments.balanced = resources::balanced(args, &self.path, errors);
            }
            "PodTopologySpread" => {
                let args = self.parsed()?;
                arguments.spread = spread::read(args, &self.path, errors);
            }
            "DynamicResources" => self.devices(arguments, errors)?,
            "VolumeBinding" => self.volume_binding(arguments, errors)?,
            "DefaultPreemption" => self.preemption(arguments, errors)?,
            _ if registry::by_name(self.name).is_none() => {
                errors.push(FieldError::not_found(&path.child("name"), self.name));
            }
            _ if self.args.is_some_and(|args| !args.is_null()) => {
                errors.push(FieldError::forbidden(
                    &self.path,
                    "the plugin takes no args",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn parsed<T: Written>(&self) -> Result<T, String> {
        let name = self.name;
        let at = format!(
            "decoding .profiles[{}].pluginConfig[{}]",
            self.profile, self.index
        );
        let Some(args) = self.args.filter(|args| !args.is_null()) else {
            return Ok(T::default());
        };
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        let (version, kind) = (text("apiVersion"), text("kind"));
        if kind.is_some_and(|kind| kind != format!("{name}Args"))
            || version.is_some_and(|version| version != super::API_VERSION)
        {
            let group = version.and_then(|version| version.split('/').next());
            let (group, kind) = (group.unwrap_or(GROUP), kind.unwrap_or_default());
            return Err(format!(
                "{at}: args for plugin {name} were not of type {name}Args.{GROUP}, got \
                 {kind}.{group}"
            ));
        }
        let decoding = format!("{at}: decoding args for plugin {name}");
        let parsed: T = serde_yaml_ng::from_value(args.clone())
            .map_err(|error| format!("{decoding}: {error}"))?;
        let unknown = parsed.unknown();
        if unknown.is_empty() {
            return Ok(parsed);
        }
        let fields: Vec<String> = unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"))
            .collect();
        let strict = "strict decoding error";
        let fields = fields.join(", ");
        Err(format!(
            "{strict}: {at}: {strict}: decoding args for plugin {name}: {strict}: {fields}"
        ))
    }

    fn inter_pod_affinity(
        &self,
        arguments: &mut Arguments,
        errors: &mut ErrorList,
    ) -> Result<(), String> {
        let args: InterPodAffinityArgs = self.parsed()?;
        let settled = &mut arguments.inter_pod_affinity;
        settled.ignore_preferred_terms_of_existing_pods =
            args.ignore_preferred_terms_of_existing_pods;
        if let Some(weight) = args.hard_pod_affinity_weight {
            settled.hard_pod_affinity_weight = weight;
            if !(0..=100).contains(&weight) {
                let path = self.path.child("hardPodAffinityWeight");
                errors.push(FieldError::invalid(
                    &path,
                    weight,
                    "not in valid range [0, 100]",
                ));
            }
        }
        Ok(())
    }

    fn volume_binding(
        &self,
        arguments: &mut Arguments,
        errors: &mut ErrorList,
    ) -> Result<(), String> {
        let args: VolumeBindingArgs = self.parsed()?;
        if args.shape.is_some() {
            let why = "unexpected field `shape`, remove it or turn on the feature gate \
                       StorageCapacityScoring";
            errors.push(FieldError::invalid_unshown(&self.path.child("shape"), why));
        }
        let Some(seconds) = args.bind_timeout_seconds else {
            return Ok(());
        };
        match u64::try_from(seconds) {
            Ok(_) if seconds > SECONDS_MAX => {
                let path = self.path.child("bindTimeoutSeconds");
                let why = format!("must be less than or equal to {SECONDS_MAX}");
                errors.push(FieldError::invalid(&path, seconds, why));
            }
            Ok(seconds) => arguments.volume_binding_timeout = Duration::from_secs(seconds),
            Err(_) => {
                let path = self.path.child("bindTimeoutSeconds");
                let why = "invalid BindTimeoutSeconds, should not be a negative value";
                errors.push(FieldError::invalid(&path, seconds, why));
            }
        }
        Ok(())
    }

    fn preemption(&self, arguments: &mut Arguments, errors: &mut ErrorList) -> Result<(), String> {
        let args: DefaultPreemptionArgs = self.parsed()?;
        let settled = &mut arguments.preemption;
        let percentage = args.min_candidate_nodes_percentage.unwrap_or(10);
        let absolute = args.min_candidate_nodes_absolute.unwrap_or(100);
        let path = |name| self.path.child(name);
        let (of_percentage, of_absolute) = (
            path("minCandidateNodesPercentage"),
            path("minCandidateNodesAbsolute"),
        );
        if !(0..=100).contains(&percentage) {
            let why = "not in valid range [0, 100]";
            errors.push(FieldError::invalid(&of_percentage, percentage, why));
        }
        if absolute < 0 {
            let why = "not in valid range [0, inf)";
            errors.push(FieldError::invalid(&of_absolute, absolute, why));
        }
        if percentage == 0 && absolute == 0 {
            let why = |other: &str| format!("cannot be zero at the same time as {other}");
            let first = why("minCandidateNodesAbsolute");
            errors.push(FieldError::invalid(&of_percentage, 0, first));
            let second = why("minCandidateNodesPercentage");
            errors.push(FieldError::invalid(&of_absolute, 0, second));
        }
        settled.candidates_percent_min = usize::try_from(percentage).unwrap_or(0);
        settled.candidates_min = usize::try_from(absolute).unwrap_or(0);
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InterPodAffinityArgs {
    hard_pod_affinity_weight: Option<i64>,
    ignore_preferred_terms_of_existing_pods: bool,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinityArgs {
    added_affinity: Option<NodeAffinity>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeBindingArgs {
    bind_timeout_seconds: Option<i64>,
    shape: Option<Value>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DefaultPreemptionArgs {
    min_candidate_nodes_percentage: Option<i64>,
    min_candidate_nodes_absolute: Option<i64>,
    #[serde(flatten)]
    unknown: Unknown,
}

macro_rules! flat {
    ($($type:ty),*) => {$(
        impl Written for $type {
            fn unknown(&self) -> Vec<String> {
                known(&self.unknown)
            }
        }
    )*};
}

flat!(
    InterPodAffinityArgs,
    NodeAffinityArgs,
    VolumeBindingArgs,
    DefaultPreemptionArgs
);
