//! One webhook as its configuration has it, read once. Pure.

use super::conditions::Conditions;
use super::review::Version;
use super::rules::Rule;
use crate::webhook::ClientConfig;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::selector::LabelSelector;
use serde_json::Value;
use std::time::Duration;

const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

#[derive(Debug)]
pub struct Hook {
    pub name: String,
    /// The name of the object that it stands in.
    pub configuration: String,
    pub rules: Vec<Rule>,
    /// Rules mean the same objects in other versions and groups too.
    pub is_equivalent: bool,
    pub namespaces: Result<LabelSelector, String>,
    pub objects: Result<LabelSelector, String>,
    pub conditions: Conditions,
    pub ignores_failures: bool,
    pub is_asked_again: bool,
    /// Trials leave nothing behind at the webhook.
    pub takes_trials: bool,
    /// The first version of a review that it takes and that is known here.
    pub review: Option<Version>,
    pub timeout: Duration,
    pub client: Result<ClientConfig, String>,
}

impl Hook {
    /// All webhooks of a configuration, in its order.
    pub fn of(configuration: &Object) -> Vec<Self> {
        let webhooks = configuration.list(&["webhooks"]).iter();
        webhooks
            .map(|webhook| Self::read(configuration.name(), webhook))
            .collect()
    }

    fn read(configuration: &str, webhook: &Value) -> Self {
        let selector = |name: &str| match json::some(webhook, name) {
            Some(selector) => LabelSelector::from_json(selector).map_err(|error| error.to_string()),
            None => Ok(LabelSelector::default()),
        };
        let versions = json::list(webhook, "admissionReviewVersions").iter();
        let mut known = versions.filter_map(|one| Version::known(one.as_str()?));
        let seconds = json::int(webhook, "timeoutSeconds").and_then(|one| u64::try_from(one).ok());
        let ignores_failures = json::text(webhook, "failurePolicy") == "Ignore";
        Self {
            name: json::text(webhook, "name").to_owned(),
            configuration: configuration.to_owned(),
            rules: json::list(webhook, "rules")
                .iter()
                .map(Rule::read)
                .collect(),
            is_equivalent: json::text(webhook, "matchPolicy") == "Equivalent",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: Conditions::read(json::list(webhook, "matchConditions")),
            ignores_failures,
            is_asked_again: json::text(webhook, "reinvocationPolicy") == "IfNeeded",
            takes_trials: matches!(json::text(webhook, "sideEffects"), "None" | "NoneOnDryRun"),
            review: known.next(),
            timeout: Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS_DEFAULT)),
            client: ClientConfig::read(json::get(webhook, "clientConfig")),
        }
    }
}
