//! The configuration of controllers as it is in force, under upstream's names. Pure.

use crate::settings::controllers::ControllersSettings;
use coracle_api::go_duration;
use coracle_client::lease::Election;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// JSON, as `/configz` has it. Loops that are left out have the names of `--disable`.
pub fn configuration(settings: &ControllersSettings, election: Option<&Election>) -> String {
    let all = ["*".to_owned()].into_iter();
    let out = settings.disabled.iter().map(|name| format!("-{name}"));
    let signing = settings.signing.as_ref();
    let configuration = json!({
        "kind": "KubeControllerManagerConfiguration",
        "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1",
        "Generic": {
            "LeaderElection": leader_election(election),
            "Controllers": all.chain(out).collect::<Vec<_>>(),
        },
        "KubeCloudShared": {
            "UseServiceAccountCredentials": settings.acts_as_accounts,
            "ClusterCIDR": settings.cluster_cidr,
        },
        "CSRSigningController": {
            "ClusterSigningCertFile": file(signing.map(|(certificate, _)| &**certificate)),
            "ClusterSigningKeyFile": file(signing.map(|(_, key)| &**key)),
        },
        "NodeLifecycleController": {
            "NodeMonitorGracePeriod": duration(settings.node_monitor_grace_period),
        },
        "SAController": {"RootCAFile": file(settings.root_ca.as_deref())},
        "LegacySATokenCleaner": {
            "CleanUpPeriod": duration(settings.legacy_token_clean_up_period),
        },
    });
    json!({"kubecontrollermanager.config.k8s.io": configuration}).to_string()
}

fn duration(duration: Duration) -> String {
    go_duration::format(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn file(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string())
        .unwrap_or_default()
}

fn leader_election(election: Option<&Election>) -> Value {
    let Some(election) = election else {
        return json!({"leaderElect": false});
    };
    json!({
        "leaderElect": true,
        "leaseDuration": duration(election.lease_duration),
        "renewDeadline": duration(election.renew_deadline),
        "retryPeriod": duration(election.retry_period),
        "resourceLock": "leases",
        "resourceName": election.name,
        "resourceNamespace": election.namespace,
    })
}

#[cfg(test)]
mod tests;
