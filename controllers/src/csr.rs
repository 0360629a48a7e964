//! What a CertificateSigningRequest asks for, and which asks are a node's own. Pure.
//!
//! A node may ask for a client certificate and for a serving certificate of its own name. The
//! rules are those of upstream's signers (KEP-1513).

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use rcgen::{CertificateSigningRequestParams, DnType, DnValue, SanType};
use std::net::IpAddr;

pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(crate) const NODE_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(crate) const NODE_SERVING: &str = "kubernetes.io/kubelet-serving";

const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The part of a request that decides about it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) common_name: String,
    /// A second value of the attribute is not seen: it makes the request nobody's own.
    pub(crate) organization: String,
    pub(crate) dns_names: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    /// Names of other kinds: e-mail, URI.
    pub(crate) has_other_names: bool,
    pub(crate) params: CertificateSigningRequestParams,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("the request is not PEM text")]
    NotText,
    #[error("the request cannot be read or its signature is wrong")]
    Unreadable(#[source] rcgen::Error),
}

/// Reads the PEM of `spec.request` and checks that it is signed by the key that it carries.
pub(crate) fn read(spec: &CertificateSigningRequestSpec) -> Result<Asked, AskError> {
    let text = std::str::from_utf8(&spec.request.0).map_err(|_| AskError::NotText)?;
    let params = CertificateSigningRequestParams::from_pem(text).map_err(AskError::Unreadable)?;
    let name = &params.params.distinguished_name;
    let value = |kind: &DnType| name.get(kind).map(text_of).unwrap_or_default();
    let mut asked = Asked {
        common_name: value(&DnType::CommonName),
        organization: value(&DnType::OrganizationName),
        dns_names: Vec::new(),
        addresses: Vec::new(),
        has_other_names: false,
        params: params.clone(),
    };
    for name in &params.params.subject_alt_names {
        match name {
            SanType::DnsName(name) => asked.dns_names.push(name.to_string()),
            SanType::IpAddress(address) => asked.addresses.push(*address),
            _ => asked.has_other_names = true,
        }
    }
    Ok(asked)
}

fn text_of(value: &DnValue) -> String {
    match value {
        DnValue::Utf8String(text) => text.clone(),
        DnValue::PrintableString(text) => text.as_str().to_owned(),
        DnValue::Ia5String(text) => text.as_str().to_owned(),
        _ => String::new(),
    }
}

/// Why a request is not one that a node's signer takes, in upstream's words; `None` when it is.
pub(crate) fn node_client_fault(
    spec: &CertificateSigningRequestSpec,
    asked: &Asked,
) -> Option<String> {
    if let Some(fault) = node_name_fault(asked) {
        return Some(fault);
    }
    if !asked.dns_names.is_empty() {
        return Some("DNS subjectAltNames are not allowed".to_owned());
    }
    if !asked.addresses.is_empty() {
        return Some("IP subjectAltNames are not allowed".to_owned());
    }
    if asked.has_other_names {
        return Some("email and URI subjectAltNames are not allowed".to_owned());
    }
    usages_fault(spec, "client auth")
}

pub(crate) fn node_serving_fault(
    spec: &CertificateSigningRequestSpec,
    asked: &Asked,
) -> Option<String> {
    if let Some(fault) = node_name_fault(asked) {
        return Some(fault);
    }
    if asked.dns_names.is_empty() && asked.addresses.is_empty() {
        return Some("DNS or IP subjectAltName is required".to_owned());
    }
    if asked.has_other_names {
        return Some("email and URI subjectAltNames are not allowed".to_owned());
    }
    usages_fault(spec, "server auth")
}

fn node_name_fault(asked: &Asked) -> Option<String> {
    if asked.organization != NODES {
        return Some(format!("subject organization is not {NODES}"));
    }
    let is_node = asked
        .common_name
        .strip_prefix(NODE_PREFIX)
        .is_some_and(|name| !name.is_empty());
    (!is_node).then(|| format!("subject common name does not begin with {NODE_PREFIX}"))
}

/// `digital signature` and `purpose` must be there, `key encipherment` may be, nothing else.
fn usages_fault(spec: &CertificateSigningRequestSpec, purpose: &str) -> Option<String> {
    let usages = spec.usages.as_deref().unwrap_or(&[]);
    let has = |name: &str| usages.iter().any(|usage| usage == name);
    let is_known = |usage: &String| {
        usage == purpose || usage == "digital signature" || usage == "key encipherment"
    };
    let fits = has(purpose) && has("digital signature") && usages.iter().all(is_known);
    (!fits).then(|| {
        format!(
            "usages did not match [digital signature {purpose}] with or without key encipherment"
        )
    })
}

/// The node that a request speaks of.
pub(crate) fn node_of(asked: &Asked) -> &str {
    asked.common_name.strip_prefix(NODE_PREFIX).unwrap_or("")
}

pub(crate) fn has_condition(csr: &CertificateSigningRequest, kind: &str) -> bool {
    let conditions = csr
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    conditions
        .unwrap_or(&[])
        .iter()
        .any(|condition| condition.type_ == kind)
}

/// Approved, denied or failed: nobody decides again.
pub(crate) fn is_decided(csr: &CertificateSigningRequest) -> bool {
    ["Approved", "Denied", "Failed"]
        .iter()
        .any(|kind| has_condition(csr, kind))
}

pub(crate) fn has_certificate(csr: &CertificateSigningRequest) -> bool {
    let certificate = csr
        .status
        .as_ref()
        .and_then(|status| status.certificate.as_ref());
    certificate.is_some_and(|bytes| !bytes.0.is_empty())
}

#[cfg(test)]
pub(crate) mod tests;
