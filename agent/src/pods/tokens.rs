//! Tokens of service accounts for the pods of this node: asked for once, kept in memory, and asked
//! for anew before they end.
//!
//! A token is bound to its pod: it ends with the pod, whatever its time.

use crate::error::chain;
use crate::volumes::content::TokenSpec;
use coracle_client::Client;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// Renewed when this part of its life is over, as upstream, or after a day.
const LIFE_PERCENT: i64 = 80;
const AGE_MAX: SignedDuration = SignedDuration::from_hours(24);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    token: String,
    issued: Timestamp,
    ends: Timestamp,
}

impl Kept {
    fn is_due(&self, now: Timestamp) -> bool {
        let life = self.ends.duration_since(self.issued);
        let age = now.duration_since(self.issued);
        age > AGE_MAX || age.as_secs() * 100 > life.as_secs() * LIFE_PERCENT
    }
}

/// By uid of the pod.
type Key = (String, TokenSpec);

#[derive(Debug, Default)]
pub struct Tokens {
    kept: Mutex<HashMap<Key, Kept>>,
}

impl Tokens {
    pub async fn get(
        &self,
        client: &Client,
        pod: &Pod,
        spec: &TokenSpec,
        now: Timestamp,
    ) -> Result<String, String> {
        let got = self.get_with_end(client, pod, spec, now).await;
        got.map(|(token, _)| token)
    }

    /// The token of the pod's account and when it ends; an old one as long as it is good when a new
    /// one is refused.
    pub async fn get_with_end(
        &self,
        client: &Client,
        pod: &Pod,
        spec: &TokenSpec,
        now: Timestamp,
    ) -> Result<(String, Timestamp), String> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let key = (uid, spec.clone());
        let known = self.kept.lock().get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| !known.is_due(now)) {
            return Ok((known.token.clone(), known.ends));
        }
        match request(client, pod, spec, now).await {
            Ok(new) => {
                let got = (new.token.clone(), new.ends);
                self.kept.lock().insert(key, new);
                Ok(got)
            }
            Err(error) => match known {
                Some(known) if now < known.ends => {
                    let pod = pod.metadata.name.as_deref().unwrap_or_default();
                    tracing::warn!(pod, error, "cannot renew a token of a service account");
                    Ok((known.token, known.ends))
                }
                Some(_) => Err(format!("token expired and refresh failed: {error}")),
                None => Err(format!("failed to fetch token: {error}")),
            },
        }
    }

    /// Forgets the tokens of all other pods.
    pub fn retain(&self, uids: &HashSet<String>) {
        self.kept.lock().retain(|(uid, _), _| uids.contains(uid));
    }
}

async fn request(
    client: &Client,
    pod: &Pod,
    spec: &TokenSpec,
    now: Timestamp,
) -> Result<Kept, String> {
    let meta = &pod.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let account = super::state::spec(pod).service_account_name.as_deref();
    let audiences = match spec.audience.as_str() {
        "" => Vec::new(),
        audience => vec![audience.to_owned()],
    };
    let body = TokenRequest {
        metadata: ObjectMeta::default(),
        spec: Some(TokenRequestSpec {
            audiences: Some(audiences),
            expiration_seconds: Some(spec.seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
            }),
        }),
        status: None,
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account = account.unwrap_or_default();
    let params = PostParams::default();
    let answer = accounts.create_token_request(account, &params, &body).await;
    let answer = answer.map_err(|error| chain(&error))?;
    let none = "the server answered without a token";
    let status = answer.status.ok_or(none)?;
    let token = status.token.filter(|token| !token.is_empty()).ok_or(none)?;
    let granted = answer.spec.and_then(|spec| spec.expiration_seconds);
    let granted = granted.unwrap_or(spec.seconds);
    let life = SignedDuration::from_secs(granted);
    let ends = status.expiration_timestamp.map(|time| time.0);
    let ends = ends.or_else(|| now.checked_add(life).ok()).unwrap_or(now);
    let issued = ends.checked_sub(life).unwrap_or(now);
    Ok(Kept {
        token,
        issued,
        ends,
    })
}

#[cfg(test)]
mod tests;
