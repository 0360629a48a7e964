//! What is to be done about a Secret for a token. Pure.

use super::bytes;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};

pub(super) const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
const CA: &str = "ca.crt";
const NAMESPACE: &str = "namespace";
const TOKEN: &str = "token";

#[derive(Debug, PartialEq)]
pub(super) enum Plan<'a> {
    Leave,
    /// There is no such account.
    Delete,
    Fill {
        account: &'a ServiceAccount,
        with_token: bool,
    },
}

/// Name and uid of the account that a Secret is for; the uid is empty until it is filled.
pub(super) fn account(secret: &Secret) -> Option<(&str, &str)> {
    let annotations = secret.metadata.annotations.as_ref()?;
    let name = annotations.get(NAME).filter(|name| !name.is_empty())?;
    Some((name, annotations.get(UID).map_or("", String::as_str)))
}

pub(super) fn plan<'a>(
    secret: &Secret,
    account: Option<&'a ServiceAccount>,
    ca_cert_pem: &str,
) -> Plan<'a> {
    if secret.metadata.deletion_timestamp.is_some() {
        return Plan::Leave;
    }
    let Some(account) = account else {
        return Plan::Delete;
    };
    let value = |key: &str| {
        let data = secret.data.as_ref()?.get(key)?;
        (!data.0.is_empty()).then_some(data.0.as_slice())
    };
    let with_token = value(TOKEN).is_none();
    let is_whole = value(CA) == Some(ca_cert_pem.as_bytes()) && value(NAMESPACE).is_some();
    if is_whole && !with_token {
        return Plan::Leave;
    }
    Plan::Fill {
        account,
        with_token,
    }
}

/// The Secret with everything in it; a token that is there stays.
pub(super) fn filled(
    secret: &Secret,
    account: &ServiceAccount,
    ca_cert_pem: &str,
    token: Option<String>,
) -> Secret {
    let mut filled = secret.clone();
    let namespace = filled.metadata.namespace.clone().unwrap_or_default();
    let data = filled.data.get_or_insert_default();
    data.insert(CA.to_owned(), bytes(ca_cert_pem));
    let own = data.entry(NAMESPACE.to_owned()).or_default();
    if own.0.is_empty() {
        *own = bytes(&namespace);
    }
    if let Some(token) = token {
        data.insert(TOKEN.to_owned(), bytes(&token));
    }
    let annotations = filled.metadata.annotations.get_or_insert_default();
    for (key, value) in [(NAME, &account.metadata.name), (UID, &account.metadata.uid)] {
        annotations.insert(key.to_owned(), value.clone().unwrap_or_default());
    }
    filled
}

/// The account without the Secret; `None` when it does not name it.
pub(super) fn without(account: &ServiceAccount, secret: &str) -> Option<ServiceAccount> {
    let secrets = account.secrets.as_deref().unwrap_or(&[]);
    let others = secrets
        .iter()
        .filter(|one| one.name.as_deref() != Some(secret));
    let others: Vec<_> = others.cloned().collect();
    (others.len() < secrets.len()).then(|| ServiceAccount {
        secrets: (!others.is_empty()).then_some(others),
        ..account.clone()
    })
}

#[cfg(test)]
mod tests;
