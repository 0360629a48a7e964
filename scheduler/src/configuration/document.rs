//! The file as it is written. Fields that nobody knows are kept, so that they can be told.

use serde::Deserialize;
use serde_yaml_ng::Value;
use std::collections::BTreeMap;

/// What no field of an object is for.
pub type Unknown = BTreeMap<String, Value>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Document {
    pub api_version: String,
    pub kind: String,
    pub parallelism: Option<i64>,
    pub leader_election: Option<LeaderElection>,
    pub client_connection: Option<ClientConnection>,
    pub enable_profiling: Option<bool>,
    pub enable_contention_profiling: Option<bool>,
    pub percentage_of_nodes_to_score: Option<i64>,
    pub pod_initial_backoff_seconds: Option<i64>,
    pub pod_max_backoff_seconds: Option<i64>,
    pub profiles: Option<Vec<Profile>>,
    pub extenders: Option<Vec<Value>>,
    pub delay_cache_until_active: Option<bool>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderElection {
    pub leader_elect: Option<bool>,
    pub lease_duration: Option<String>,
    pub renew_deadline: Option<String>,
    pub retry_period: Option<String>,
    pub resource_lock: Option<String>,
    pub resource_name: Option<String>,
    pub resource_namespace: Option<String>,
    #[serde(flatten)]
    unknown: Unknown,
}

/// How upstream's process connects: of no use to this one, whose connection is its command's.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConnection {
    pub kubeconfig: Option<String>,
    pub accept_content_types: Option<String>,
    pub content_type: Option<String>,
    pub qps: Option<f64>,
    pub burst: Option<i64>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    pub scheduler_name: Option<String>,
    pub percentage_of_nodes_to_score: Option<i64>,
    pub plugins: Option<Plugins>,
    pub plugin_config: Vec<PluginConfig>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugins {
    pub pre_enqueue: PluginSet,
    pub queue_sort: PluginSet,
    pub pre_filter: PluginSet,
    pub filter: PluginSet,
    pub post_filter: PluginSet,
    pub pre_score: PluginSet,
    pub score: PluginSet,
    pub reserve: PluginSet,
    pub permit: PluginSet,
    pub pre_bind: PluginSet,
    pub bind: PluginSet,
    pub post_bind: PluginSet,
    pub multi_point: PluginSet,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginSet {
    pub enabled: Vec<Plugin>,
    pub disabled: Vec<Plugin>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugin {
    pub name: String,
    pub weight: Option<i32>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginConfig {
    pub name: String,
    pub args: Option<Value>,
    #[serde(flatten)]
    unknown: Unknown,
}

impl Plugin {
    pub fn new(name: &str, weight: i64) -> Self {
        Self {
            name: name.to_owned(),
            weight: i32::try_from(weight).ok(),
            ..Self::default()
        }
    }
}

impl Plugins {
    /// By the names of their fields.
    pub fn sets(&self) -> [(&'static str, &PluginSet); 13] {
        [
            ("preFilter", &self.pre_filter),
            ("filter", &self.filter),
            ("postFilter", &self.post_filter),
            ("reserve", &self.reserve),
            ("preScore", &self.pre_score),
            ("score", &self.score),
            ("preBind", &self.pre_bind),
            ("bind", &self.bind),
            ("postBind", &self.post_bind),
            ("permit", &self.permit),
            ("preEnqueue", &self.pre_enqueue),
            ("queueSort", &self.queue_sort),
            ("multiPoint", &self.multi_point),
        ]
    }
}

impl Document {
    /// The paths of all fields that nobody knows.
    pub fn unknown(&self) -> Vec<String> {
        let mut found = Vec::new();
        note(&mut found, "", &self.unknown);
        if let Some(election) = &self.leader_election {
            note(&mut found, "leaderElection.", &election.unknown);
        }
        if let Some(connection) = &self.client_connection {
            note(&mut found, "clientConnection.", &connection.unknown);
        }
        for (index, profile) in self.profiles.iter().flatten().enumerate() {
            profile.note_unknown(&format!("profiles[{index}]."), &mut found);
        }
        found
    }
}

impl Profile {
    fn note_unknown(&self, path: &str, found: &mut Vec<String>) {
        note(found, path, &self.unknown);
        for (index, one) in self.plugin_config.iter().enumerate() {
            note(
                found,
                &format!("{path}pluginConfig[{index}]."),
                &one.unknown,
            );
        }
        let Some(plugins) = &self.plugins else {
            return;
        };
        note(found, &format!("{path}plugins."), &plugins.unknown);
        for (name, set) in plugins.sets() {
            let path = format!("{path}plugins.{name}.");
            note(found, &path, &set.unknown);
            for (list, plugins) in [("enabled", &set.enabled), ("disabled", &set.disabled)] {
                for (index, plugin) in plugins.iter().enumerate() {
                    note(found, &format!("{path}{list}[{index}]."), &plugin.unknown);
                }
            }
        }
    }
}

pub fn note(found: &mut Vec<String>, path: &str, unknown: &Unknown) {
    found.extend(unknown.keys().map(|name| format!("{path}{name}")));
}
