//! What a token says, as upstream's bound tokens say it. Pure.

use crate::authenticate::user::SERVICE_ACCOUNT_PREFIX;
use coracle_api::json as field;
use coracle_api::object::Object;
use serde_json::{Map, Value, json};

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    pub uid: String,
}

impl Reference {
    pub fn to(object: &Object) -> Self {
        Self {
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
        }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({ "name": self.name });
        if !self.uid.is_empty() {
            value["uid"] = self.uid.clone().into();
        }
        value
    }

    fn read(value: &Value) -> Self {
        Self {
            name: field::text(value, "name").to_owned(),
            uid: field::text(value, "uid").to_owned(),
        }
    }
}

/// The claims of a token. Times are in seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    pub id: String,
    pub audiences: Vec<String>,
    pub issued_at: i64,
    pub not_before: i64,
    pub expires_at: i64,
    pub namespace: String,
    pub account: Reference,
    pub pod: Option<Reference>,
    pub secret: Option<Reference>,
    pub node: Option<Reference>,
    /// From when on a user of the token is told that it should have been renewed.
    pub warn_after: Option<i64>,
}

const OWN: &str = "kubernetes.io";

impl Claims {
    pub fn subject(&self) -> String {
        format!(
            "{SERVICE_ACCOUNT_PREFIX}{}:{}",
            self.namespace, self.account.name
        )
    }

    pub fn to_value(&self, issuer: &str) -> Value {
        let mut own = Map::new();
        own.insert("namespace".to_owned(), self.namespace.clone().into());
        let bound = [
            ("node", &self.node),
            ("pod", &self.pod),
            ("secret", &self.secret),
        ];
        for (name, reference) in bound {
            if let Some(reference) = reference {
                own.insert(name.to_owned(), reference.to_value());
            }
        }
        own.insert("serviceaccount".to_owned(), self.account.to_value());
        if let Some(time) = self.warn_after {
            own.insert("warnafter".to_owned(), time.into());
        }
        json!({
            "aud": self.audiences,
            "exp": self.expires_at,
            "iat": self.issued_at,
            "iss": issuer,
            "jti": self.id,
            OWN: own,
            "nbf": self.not_before,
            "sub": self.subject(),
        })
    }

    /// The claims of a token whose signature is good. What is absent reads as zero or empty.
    pub fn read(value: &Value) -> Self {
        let own = field::get(value, OWN);
        let reference = |name: &str| field::some(own, name).map(Reference::read);
        let time = |name: &str| field::get(value, name).as_i64().unwrap_or(0);
        let audiences = match field::get(value, "aud") {
            Value::String(one) => vec![one.clone()],
            _ => field::list(value, "aud")
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        };
        Self {
            id: field::text(value, "jti").to_owned(),
            audiences,
            issued_at: time("iat"),
            not_before: time("nbf"),
            expires_at: time("exp"),
            namespace: field::text(own, "namespace").to_owned(),
            account: reference("serviceaccount").unwrap_or_default(),
            pod: reference("pod"),
            secret: reference("secret"),
            node: reference("node"),
            warn_after: field::get(own, "warnafter").as_i64(),
        }
    }
}
