//! What a webhook says: the response of a review, checked as upstream checks it. Pure.

use super::review::Version;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::json;
use coracle_api::status::Status;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const KIND: &str = "AdmissionReview";
const JSON_PATCH: &str = "JSONPatch";

/// What counts of a response.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub is_allowed: bool,
    /// Of a refusal.
    pub status: Option<Value>,
    /// Empty for none.
    pub patch: Vec<u8>,
    pub patch_type: String,
    pub warnings: Vec<String>,
    pub annotations: BTreeMap<String, String>,
}

/// Why a body is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no review at all.
    Undecodable(String),
    /// It is one that does not answer what was asked.
    Invalid(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    response: Option<Response>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    uid: String,
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// Reads the answer to the review `uid`.
pub fn read(body: &[u8], version: Version, uid: &str, may_patch: bool) -> Result<Answer, Fault> {
    let review: Review = serde_json::from_slice(body).map_err(|error| {
        let why = format!("couldn't get version/kind; json parse error: {error}");
        Fault::Undecodable(why)
    })?;
    check_kind(&review, version)?;
    let invalid = |why: String| Err(Fault::Invalid(why));
    let Some(response) = review.response else {
        return invalid("webhook response was absent".to_owned());
    };
    let patch = STANDARD.decode(response.patch.unwrap_or_default());
    let patch = patch.map_err(|error| {
        Fault::Undecodable(format!("illegal base64 data in response.patch: {error}"))
    })?;
    if version == Version::V1 {
        if response.uid != uid {
            let got = response.uid;
            return invalid(format!("expected response.uid={uid:?}, got {got:?}"));
        }
        let (kind, of) = (&review.kind, &review.api_version);
        if kind != KIND || of != version.api_version() {
            let got = shown(of, kind);
            let wanted = shown(version.api_version(), KIND);
            return invalid(format!("expected webhook response of {wanted}, got {got}"));
        }
        let of_patch = (patch.is_empty(), response.patch_type.as_deref());
        check_patch(of_patch, may_patch).map_err(Fault::Invalid)?;
    }
    let patch_type = match version {
        Version::V1 => response.patch_type.unwrap_or_default(),
        Version::V1Beta1 => JSON_PATCH.to_owned(),
    };
    Ok(Answer {
        is_allowed: response.allowed,
        status: response.status,
        patch: if may_patch { patch } else { Vec::new() },
        patch_type,
        warnings: response.warnings.unwrap_or_default(),
        annotations: response.audit_annotations.unwrap_or_default(),
    })
}

/// A kind that is not said is taken for the right one until the answer is looked at.
fn check_kind(review: &Review, version: Version) -> Result<(), Fault> {
    let (of, kind) = (review.api_version.as_str(), review.kind.as_str());
    let is_review = kind.is_empty() || kind == KIND;
    if is_review && (of.is_empty() || of == version.api_version()) {
        return Ok(());
    }
    let other = [Version::V1, Version::V1Beta1]
        .into_iter()
        .find(|other| other.api_version() == of);
    Err(Fault::Undecodable(match other {
        Some(other) if is_review => format!(
            "converting ({}.{KIND}) to ({}.{KIND}): unknown conversion",
            other.name(),
            version.name()
        ),
        _ => format!("no kind {kind:?} is registered for version {of:?}"),
    }))
}

fn shown(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

fn check_patch(
    (is_empty, patch_type): (bool, Option<&str>),
    may_patch: bool,
) -> Result<(), String> {
    let why = match (may_patch, is_empty, patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The failure that a client is told of a refusal.
pub fn denied(webhook: &str, status: Option<&Value>) -> Status {
    let status = status.unwrap_or(&json::NULL);
    let (message, reason) = (json::text(status, "message"), json::text(status, "reason"));
    let by = format!("admission webhook {webhook:?} denied the request");
    let code = json::int(status, "code").unwrap_or(0);
    Status {
        // No success comes with a refusal.
        code: u16::try_from(code)
            .ok()
            .filter(|code| (400..1000).contains(code))
            .unwrap_or(400),
        message: match (message, reason) {
            ("", "") => format!("{by} without explanation"),
            ("", reason) => format!("{by}: {reason}"),
            (message, _) => format!("{by}: {message}"),
        },
        reason: reason.to_owned().into(),
        details: json::some(status, "details")
            .filter(|details| details.is_object())
            .cloned()
            .unwrap_or_default(),
    }
}

/// True for a patch of the one type that there is.
pub fn is_json_patch(patch_type: &str) -> bool {
    patch_type == JSON_PATCH
}

#[cfg(test)]
mod tests;
