//! Certificate signing requests: asked for by anyone, approved through `approval`, signed through
//! `status`. The spec never changes and names who asked.

mod signature; // Whether it holds.
mod validate;

use crate::field::ErrorList;
use crate::kinds::prepare;
use crate::kinds::row::{self, Names, PART_VERBS, column};
use crate::object::Object;
use crate::resource::{
    Column, NameRule, Part, Requester, Resource, Rules, Subresource, SubresourceKind,
};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["csr"],
    subresources: &[
        Subresource {
            name: "approval",
            kind: SubresourceKind::Part,
            body: None,
            verbs: PART_VERBS,
        },
        row::STATUS,
    ],
    selectable_fields: &["spec.signerName"],
    ..row::cluster(
        "certificates.k8s.io",
        "v1",
        Names {
            kind: "CertificateSigningRequest",
            plural: "certificatesigningrequests",
            singular: "certificatesigningrequest",
            schema: "io.k8s.api.certificates.v1.CertificateSigningRequest",
        },
        &SigningRequest,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    row::AGE,
    column("SignerName", "string", "Who is asked to sign."),
    column("Requestor", "string", "Who asks."),
    column(
        "RequestedDuration",
        "string",
        "How long the certificate should be valid.",
    ),
    column("Condition", "string", "How far the request has come."),
];

/// Conditions that only `approval` sets.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

#[derive(Debug)]
struct SigningRequest;

impl Rules for SigningRequest {
    fn default(&self, _object: &mut Object) {}

    /// Who asks is written by the server, in `stamp`.
    fn prepare_create(&self, object: &mut Object) {
        for field in ["username", "uid", "groups", "extra"] {
            object.remove(&["spec", field]);
        }
        object.set(&["status"], json!({}));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::keep(new, old, &["spec"]);
        match part {
            Part::Status => keep_decisions(new, old),
            Part::Other("approval") => {
                let conditions = new.get(&["status", "conditions"]).cloned();
                prepare::keep(new, old, &["status"]);
                prepare::put(new, &["status", "conditions"], conditions);
            }
            Part::Main | Part::Other(_) => prepare::keep(new, old, &["status"]),
        }
    }

    fn stamp(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        part: Part<'_>,
        by: &Requester<'_>,
        now: &str,
    ) {
        match old {
            None => requester(object, by),
            Some(old) if part != Part::Main => condition_times(object, old, now),
            Some(_) => {}
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::request(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        validate::update(new, old, part)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let signer = match object.str(&["spec", "signerName"]) {
            "" => "<none>",
            name => name,
        };
        let duration = object
            .i64(&["spec", "expirationSeconds"])
            .map_or_else(|| "<none>".to_owned(), print::human_duration);
        vec![
            object.name().into(),
            print::age_of(object, now),
            signer.into(),
            object.str(&["spec", "username"]).into(),
            duration.into(),
            condition(object).into(),
        ]
    }
}

fn requester(object: &mut Object, by: &Requester<'_>) {
    if !by.name.is_empty() {
        object.set(&["spec", "username"], by.name.into());
    }
    if !by.uid.is_empty() {
        object.set(&["spec", "uid"], by.uid.into());
    }
    if !by.groups.is_empty() {
        object.set(&["spec", "groups"], by.groups.into());
    }
    if let Some(extra) = by.extra.filter(|extra| !json::is_empty(extra)) {
        object.set(&["spec", "extra"], extra.clone());
    }
}

fn kind_of(condition: &Value) -> &str {
    json::text(condition, "type")
}

/// As long as none was added or removed, the decisions stay as they were.
fn keep_decisions(new: &mut Object, old: &Object) {
    for decision in DECISIONS {
        let before: Vec<Value> = old
            .list(&["status", "conditions"])
            .iter()
            .filter(|condition| kind_of(condition) == decision)
            .cloned()
            .collect();
        let conditions = new
            .get_mut(&["status", "conditions"])
            .and_then(Value::as_array_mut);
        let mut now: Vec<&mut Value> = conditions
            .into_iter()
            .flatten()
            .filter(|condition| kind_of(condition) == decision)
            .collect();
        if now.len() == before.len() {
            for (slot, kept) in now.iter_mut().zip(before) {
                **slot = kept;
            }
        }
    }
}

fn condition_times(new: &mut Object, old: &Object, now: &str) {
    let before = old.list(&["status", "conditions"]);
    let conditions = new
        .get_mut(&["status", "conditions"])
        .and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        json::default_text(condition, "lastUpdateTime", now);
        let same = |other: &&Value| {
            kind_of(other) == kind_of(condition)
                && json::text(other, "status") == json::text(condition, "status")
                && !json::text(other, "lastTransitionTime").is_empty()
        };
        let kept = before
            .iter()
            .find(same)
            .map(|other| json::text(other, "lastTransitionTime"));
        json::default_text(condition, "lastTransitionTime", kept.unwrap_or(now));
    }
}

fn condition(object: &Object) -> String {
    let conditions = object.list(&["status", "conditions"]);
    let has = |kind: &str| {
        conditions
            .iter()
            .any(|condition| kind_of(condition) == kind)
    };
    let mut text = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !object.str(&["status", "certificate"]).is_empty() {
        text.push_str(",Issued");
    }
    text
}

#[cfg(test)]
mod tests;
