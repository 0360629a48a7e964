//! Tokens of the older kind: without an end, kept in a Secret of type
//! `kubernetes.io/service-account-token`, and good for as long as the Secret holds them. Pure.
//!
//! Source of the rules: upstream's legacy validator.

use super::claims::Reference;
use super::{Count, Remarks, TokenError};
use crate::authenticate::same_secret;
use crate::authenticate::user::{SERVICE_ACCOUNT_PREFIX, service_account};
use crate::view::View;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::{Value, json};

pub const ISSUER: &str = "kubernetes/serviceaccount";
/// The day on which a token was last used, in UTC.
pub const LAST_USED_LABEL: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE_LABEL: &str = "kubernetes.io/legacy-token-invalid-since";
const TOKEN: &str = "token";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const ACCOUNT: &str = "kubernetes.io/serviceaccount/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

const WARNING: &str = "Use tokens from the TokenRequest API or manually created secret-based \
                       tokens instead of auto-generated secret-based tokens.";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    pub namespace: String,
    pub account: Reference,
    pub secret: String,
}

/// The Secret of a token that has just been used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    pub namespace: String,
    pub secret: String,
    pub uid: String,
    /// What its label says.
    pub last_used: String,
}

impl Claims {
    pub fn to_value(&self) -> Value {
        json!({
            "iss": ISSUER,
            NAMESPACE: self.namespace,
            SECRET: self.secret,
            ACCOUNT: self.account.name,
            ACCOUNT_UID: self.account.uid,
            "sub": self.subject(),
        })
    }

    fn subject(&self) -> String {
        format!(
            "{SERVICE_ACCOUNT_PREFIX}{}:{}",
            self.namespace, self.account.name
        )
    }

    /// The claims of a token whose signature is good.
    pub fn read(value: &Value) -> Result<Self, TokenError> {
        let text = |name: &str, missing: &'static str| match json::text(value, name) {
            "" => Err(TokenError::Missing(missing)),
            text => Ok(text.to_owned()),
        };
        let subject = text("sub", "sub")?;
        let claims = Self {
            namespace: text(NAMESPACE, "namespace")?,
            secret: text(SECRET, "secretName")?,
            account: Reference {
                name: text(ACCOUNT, "serviceAccountName")?,
                uid: text(ACCOUNT_UID, "serviceAccountUID")?,
            },
        };
        let own = Some((claims.namespace.as_str(), claims.account.name.as_str()));
        if service_account(&subject) != own {
            return Err(TokenError::Subject);
        }
        Ok(claims)
    }

    /// Whether the Secret still holds the token and the account is still there. A use is one also
    /// where the Secret is marked: whoever takes the mark off finds when it was.
    pub fn check(
        &self,
        view: &dyn View,
        token: &str,
        remarks: &mut Remarks,
    ) -> Result<(), TokenError> {
        let (namespace, account) = (self.namespace.as_str(), &self.account);
        let secret = view
            .get("", "secrets", namespace, &self.secret)
            .filter(|secret| !secret.is_deleting())
            .ok_or(TokenError::LegacyInvalidated)?;
        let kept = STANDARD.decode(secret.str(&["data", TOKEN]));
        if !kept.is_ok_and(|kept| same_secret(&kept, token.as_bytes())) {
            return Err(TokenError::NotTheCopy);
        }
        let found = view
            .get("", "serviceaccounts", namespace, &account.name)
            .ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
        if found.is_deleting() {
            let name = format!("{namespace}/{}", account.name);
            return Err(TokenError::LegacyDeletedAccount(name));
        }
        if found.uid() != account.uid {
            return Err(TokenError::LegacyOtherAccount {
                own: found.uid().to_owned(),
                claimed: account.uid.clone(),
            });
        }
        remarks.used = Some(self.used(&secret));
        if !label(&secret, INVALID_SINCE_LABEL).is_empty() {
            let marked = format!("{}/{namespace}", self.secret);
            let audit = ("authentication.k8s.io/legacy-token-invalidated", marked);
            remarks.audit.push(audit);
            remarks.count = Some(Count::Invalidated);
            return Err(TokenError::MarkedInvalid {
                secret: format!("{namespace}/{}", self.secret),
                account: format!("{namespace}/{}", account.name),
            });
        }
        let mut named = found.list(&["secrets"]).iter();
        let is_generated = named.any(|one| json::text(one, "name") == self.secret);
        let (audit, count) = if is_generated {
            remarks.warning = Some(WARNING);
            let audit = "authentication.k8s.io/legacy-token-autogenerated-secret";
            (audit, Count::Generated)
        } else {
            let audit = "authentication.k8s.io/legacy-token-manual-secret";
            (audit, Count::Manual)
        };
        remarks.audit.push((audit, self.secret.clone()));
        remarks.count = Some(count);
        Ok(())
    }

    fn used(&self, secret: &Object) -> Used {
        Used {
            namespace: self.namespace.clone(),
            secret: self.secret.clone(),
            uid: secret.uid().to_owned(),
            last_used: label(secret, LAST_USED_LABEL).to_owned(),
        }
    }
}

/// That a token of this kind was shown, whatever becomes of it.
pub fn remark(claims: &Value, remarks: &mut Remarks) {
    let subject = json::text(claims, "sub").to_owned();
    let audit = ("authentication.k8s.io/legacy-token", subject);
    remarks.audit.push(audit);
    remarks.is_legacy = true;
}

fn label<'a>(object: &'a Object, name: &str) -> &'a str {
    object.str(&["metadata", "labels", name])
}
