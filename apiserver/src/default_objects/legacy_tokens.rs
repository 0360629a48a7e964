//! Since when it is noted that tokens of the older kind are used: the loop that cleans them up
//! counts from there, as it must take a token that was never seen for one that nobody uses.

use super::{ReconcileError, ensure, following, read};
use crate::server::InProcess;
use coracle_api::timestamp;
use serde_json::json;

const COLLECTION: &str = "/api/v1/namespaces/kube-system/configmaps";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &[&str] = &["data", "since"];

/// Begins today where no day is said. One that is there stays.
pub async fn reconcile(api: &InProcess, today: &str) -> Result<(), ReconcileError> {
    let found = read(api, &format!("{COLLECTION}/{NAME}")).await;
    let found = found.map_err(|source| ReconcileError {
        what: format!("ConfigMap {NAME}"),
        source,
    })?;
    let is_said = found.is_some_and(|found| timestamp::parse_day(found.str(SINCE)).is_some());
    if is_said {
        return Ok(());
    }
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": "kube-system" },
        "data": { "since": today },
    });
    ensure(api, following(COLLECTION, &[SINCE], object)).await
}
