//! What is wrong with a certificate signing request.

use super::signature::{OTHER_TAGS, TRUNCATED};
use super::{DECISIONS, signature};
use crate::der::{BIT_STRING, INTEGER, SEQUENCE};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::resource::Part;
use crate::{der, json, names};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const EXPIRATION_SECONDS_MIN: i64 = 600;
const SIGNER_NAME_BYTES_MAX: usize = 571;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// Usages a certificate may have, sorted.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub fn request(object: &Object) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&json::NULL);
    let mut errors = ErrorList::new();
    let block = pem(json::text(spec, "request"), "CERTIFICATE REQUEST");
    let checked = block.and_then(|bytes| {
        form_of_request(&bytes)?;
        signature::problem(&bytes).map_or(Ok(()), Err)
    });
    if let Err(detail) = checked {
        let value = json::get(spec, "request").clone();
        errors.push(FieldError::invalid(&path.child("request"), value, detail));
    }
    errors.extend(usages(json::list(spec, "usages"), &path.child("usages")));
    errors.extend(signer_name(
        json::text(spec, "signerName"),
        &path.child("signerName"),
    ));
    if let Some(seconds) = json::int(spec, "expirationSeconds")
        && seconds < EXPIRATION_SECONDS_MIN
    {
        let path = path.child("expirationSeconds");
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
    errors.extend(conditions(object.list(&["status", "conditions"])));
    let certificate = object.str(&["status", "certificate"]);
    if !certificate.is_empty()
        && let Err(detail) = pem(certificate, "CERTIFICATE")
    {
        let path = Path::root("status").child("certificate");
        errors.push(FieldError::invalid(&path, "<certificate data>", detail));
    }
    errors
}

pub fn update(new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
    let mut errors = request(new);
    let path = Path::root("status").child("conditions");
    let of_type = |object: &Object, kind: &str| -> Vec<Value> {
        let conditions = object.list(&["status", "conditions"]).iter();
        conditions
            .filter(|c| json::text(c, "type") == kind)
            .cloned()
            .collect()
    };
    let mut forbidden = |detail: String| errors.push(FieldError::forbidden(&path, detail));
    for kind in ["Approved", "Denied", "Failed"] {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            forbidden(format!(
                "updates may not remove a condition of type \"{kind}\""
            ));
        }
    }
    if part != Part::Other("approval") {
        for kind in DECISIONS {
            let (now, before) = (of_type(new, kind), of_type(old, kind));
            if now.len() > before.len() {
                forbidden(format!(
                    "updates may not add a condition of type \"{kind}\""
                ));
            } else if now.len() == before.len() && now != before {
                forbidden(format!(
                    "updates may not modify a condition of type \"{kind}\""
                ));
            }
        }
    }
    let [now, before] = [new, old].map(|object| object.str(&["status", "certificate"]));
    let path = Path::root("status").child("certificate");
    if now != before && part != Part::Status {
        errors.push(FieldError::forbidden(
            &path,
            "updates may not set certificate content",
        ));
    } else if now != before && !before.is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The bytes of the first block that is of a kind, as all blocks must be.
fn pem(base64: &str, kind: &str) -> Result<Vec<u8>, String> {
    let text = STANDARD
        .decode(base64)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.unwrap_or_default();
    let mut first = None;
    for rest in text.split("-----BEGIN ").skip(1) {
        let (found, rest) = rest.split_once("-----").unwrap_or(("", ""));
        if found != kind {
            return Err(match kind {
                "CERTIFICATE" => {
                    format!("only CERTIFICATE PEM blocks are allowed, found \"{found}\"")
                }
                _ => format!("PEM block type must be {kind}"),
            });
        }
        let Some((body, _)) = rest.split_once(&format!("-----END {kind}-----")) else {
            break;
        };
        if first.is_none() {
            first = body_of(body);
        }
    }
    first.ok_or_else(|| match kind {
        "CERTIFICATE" => "must contain at least one CERTIFICATE PEM block".to_owned(),
        _ => format!("PEM block type must be {kind}"),
    })
}

/// What a block holds, without headers before it.
fn body_of(text: &str) -> Option<Vec<u8>> {
    let lines = text.lines().filter(|line| !line.contains(':'));
    let digits: String = lines.flat_map(|line| line.split_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

/// Whether bytes are made as a request is (RFC 2986): what is asked for, with a number of its
/// version, a subject, a key and attributes, then an algorithm and a signature.
fn form_of_request(bytes: &[u8]) -> Result<(), &'static str> {
    const ATTRIBUTES: u8 = 0xa0;
    if bytes.first().is_some_and(|tag| *tag != SEQUENCE) {
        return Err(OTHER_TAGS);
    }
    let (outer, after) = der::first(bytes).ok_or(TRUNCATED)?;
    let tags = |content: &[u8]| -> Result<Vec<u8>, &'static str> {
        let all = der::all(content).ok_or(TRUNCATED)?;
        Ok(all.iter().map(|element| element.tag).collect())
    };
    let of_outer = tags(outer.content)?;
    let (asked, _) = der::first(outer.content).ok_or(TRUNCATED)?;
    if of_outer != [SEQUENCE, SEQUENCE, BIT_STRING] {
        return Err(OTHER_TAGS);
    }
    if !after.is_empty() {
        return Err("asn1: syntax error: trailing data");
    }
    match tags(asked.content)?[..] {
        [INTEGER, SEQUENCE, SEQUENCE] | [INTEGER, SEQUENCE, SEQUENCE, ATTRIBUTES] => Ok(()),
        _ => Err(OTHER_TAGS),
    }
}

fn usages(usages: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if usages.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        checks::one_of(
            &mut errors,
            usage.as_str().unwrap_or(""),
            USAGES,
            &path.index(index),
        );
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages[..index].contains(usage) {
            errors.push(FieldError::duplicate(&path.index(index), usage.clone()));
        }
    }
    errors
}

/// `example.com/signer`: a domain of at least two labels, a slash, a path.
fn signer_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let invalid = |detail: &str| vec![FieldError::invalid(path, name, detail)];
    if name == LEGACY_SIGNER {
        return invalid("the legacy signerName is not allowed via this API version");
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        return invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
    };
    let mut errors = ErrorList::new();
    errors.extend(first_bad_label(domain, names::dns_label, path));
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    errors.extend(first_bad_label(rest, names::dns_subdomain, path));
    if name.len() > SIGNER_NAME_BYTES_MAX {
        errors.push(FieldError::too_long(path, SIGNER_NAME_BYTES_MAX));
    }
    errors
}

/// Errors of the first label of a dotted text that is not well-formed.
fn first_bad_label(text: &str, check: fn(&str) -> Vec<String>, path: &Path) -> ErrorList {
    let labels = text.split('.').map(|label| (label, check(label)));
    let bad = labels.into_iter().find(|(_, details)| !details.is_empty());
    bad.into_iter()
        .flat_map(|(label, details)| {
            details
                .into_iter()
                .map(move |detail| format!("validating label \"{label}\": {detail}"))
        })
        .map(|detail| FieldError::invalid(path, text, detail))
        .collect()
}

fn conditions(conditions: &[Value]) -> ErrorList {
    let path = Path::root("status").child("conditions");
    let kind = |condition: &Value| json::text(condition, "type").to_owned();
    let mut errors = ErrorList::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        checks::required(&mut errors, condition, "type", &at);
        let kind_now = kind(condition);
        let only_true = matches!(kind_now.as_str(), "Approved" | "Denied" | "Failed");
        let statuses: &[&str] = if only_true {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        let status = json::text(condition, "status");
        checks::required_one_of(&mut errors, status, statuses, &at.child("status"));
        let before = &conditions[..index];
        let has = |name: &str| before.iter().any(|other| kind(other) == name);
        let clash =
            kind_now == "Approved" && has("Denied") || kind_now == "Denied" && has("Approved");
        if clash {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&path, kind_now.as_str(), detail));
        }
        if has(&kind_now) {
            errors.push(FieldError::duplicate(&at.child("type"), kind_now));
        }
    }
    errors
}
