//! What a CertificateSigningRequest asks for, and which asks are a node's own. Pure.
//!
//! A node may ask for a client certificate and for a serving certificate of its own name. The
//! rules are those of upstream's signers (KEP-1513).

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use rcgen::string::Ia5String;
use rcgen::{SanType, SubjectPublicKeyInfo};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateSigningRequestDer, pem};
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(crate) const NODE_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(crate) const NODE_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Nobody can ask for it by the API any more; requests of old stores may.
pub(crate) const LEGACY: &str = "kubernetes.io/legacy-unknown";

const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The part of a request that decides about it, and what of it goes into the certificate.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) emails: Vec<String>,
    pub(crate) uris: Vec<String>,
    /// The name as it was written: rcgen's has one value an attribute.
    pub(crate) subject: Vec<u8>,
    pub(crate) key: SubjectPublicKeyInfo,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem(#[source] pem::Error),
    #[error("unable to parse certificate request: {0}")]
    Unreadable(String),
    #[error("unable to verify certificate request signature")]
    Signature,
    #[error("the request's key is of a kind that is not signed: ECDSA P-256 or P-384, or RSA")]
    Key(#[source] rcgen::Error),
    #[error("the request's name {0:?} cannot be written into a certificate")]
    Name(String),
}

/// Reads the PEM of `spec.request` and checks that it is signed by the key that it carries.
pub(crate) fn read(spec: &CertificateSigningRequestSpec) -> Result<Asked, AskError> {
    let der = CertificateSigningRequestDer::from_pem_slice(&spec.request.0);
    let der = der.map_err(AskError::Pem)?;
    let unreadable = |error: String| AskError::Unreadable(error);
    let (_, request) =
        X509CertificationRequest::from_der(&der).map_err(|error| unreadable(error.to_string()))?;
    request
        .verify_signature()
        .map_err(|_| AskError::Signature)?;
    let info = &request.certification_request_info;
    let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let names = info.subject.iter_common_name();
    let organizations = info.subject.iter_organization();
    let mut asked = Asked {
        common_name: names
            .filter_map(|one| one.as_str().ok())
            .last()
            .unwrap_or("")
            .to_owned(),
        organizations: texts(organizations.filter_map(|one| one.as_str().ok()).collect()),
        dns_names: Vec::new(),
        addresses: Vec::new(),
        emails: Vec::new(),
        uris: Vec::new(),
        subject: info.subject.as_raw().to_vec(),
        key: SubjectPublicKeyInfo::from_der(info.subject_pki.raw).map_err(AskError::Key)?,
    };
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension {
            names.general_names.iter().for_each(|one| asked.add(one));
        }
    }
    Ok(asked)
}

impl Asked {
    /// Names of other kinds do not go into the certificate, as upstream has it.
    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let sixteen = <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
                self.addresses.extend(four.or(sixteen));
            }
            _ => {}
        }
    }

    /// The alternative names as a certificate has them.
    pub(crate) fn alternative_names(&self) -> Result<Vec<SanType>, AskError> {
        let mut names = Vec::new();
        for name in &self.dns_names {
            names.push(SanType::DnsName(written(name)?));
        }
        for name in &self.emails {
            names.push(SanType::Rfc822Name(written(name)?));
        }
        names.extend(self.addresses.iter().copied().map(SanType::IpAddress));
        for name in &self.uris {
            names.push(SanType::URI(written(name)?));
        }
        Ok(names)
    }
}

fn written(text: &str) -> Result<Ia5String, AskError> {
    Ia5String::try_from(text).map_err(|_| AskError::Name(text.to_owned()))
}

/// Why a request is not one that a node's signer takes, in upstream's words; `None` when it is.
pub(crate) fn node_client_fault(
    spec: &CertificateSigningRequestSpec,
    asked: &Asked,
) -> Option<String> {
    let faults = [
        (!is_of_nodes(asked), NOT_OF_NODES),
        (
            !asked.dns_names.is_empty(),
            "DNS subjectAltNames are not allowed",
        ),
        (!asked.emails.is_empty(), NO_EMAILS),
        (
            !asked.addresses.is_empty(),
            "IP subjectAltNames are not allowed",
        ),
        (!asked.uris.is_empty(), NO_URIS),
        (!is_node(asked), NOT_A_NODE),
    ];
    first(&faults).or_else(|| usages_fault(spec, "client auth"))
}

pub(crate) fn node_serving_fault(
    spec: &CertificateSigningRequestSpec,
    asked: &Asked,
) -> Option<String> {
    let has_no_name = asked.dns_names.is_empty() && asked.addresses.is_empty();
    let faults = [
        (!is_of_nodes(asked), NOT_OF_NODES),
        (has_no_name, "DNS or IP subjectAltName is required"),
        (!asked.emails.is_empty(), NO_EMAILS),
        (!asked.uris.is_empty(), NO_URIS),
    ];
    first(&faults)
        .or_else(|| usages_fault(spec, "server auth"))
        .or_else(|| first(&[(!is_node(asked), NOT_A_NODE)]))
}

const NOT_OF_NODES: &str = "subject organization is not system:nodes";
const NOT_A_NODE: &str = "subject common name does not begin with system:node:";
const NO_EMAILS: &str = "Email subjectAltNames are not allowed";
const NO_URIS: &str = "URI subjectAltNames are not allowed";

fn first(faults: &[(bool, &str)]) -> Option<String> {
    let found = faults.iter().find(|(is_fault, _)| *is_fault);
    found.map(|(_, why)| (*why).to_owned())
}

fn is_of_nodes(asked: &Asked) -> bool {
    matches!(asked.organizations.as_slice(), [one] if one == NODES)
}

fn is_node(asked: &Asked) -> bool {
    asked.common_name.starts_with(NODE_PREFIX)
}

/// `digital signature` and `purpose` must be there, `key encipherment` may be, nothing else.
fn usages_fault(spec: &CertificateSigningRequestSpec, purpose: &str) -> Option<String> {
    let usages = spec.usages.as_deref().unwrap_or(&[]);
    let has = |name: &str| usages.iter().any(|usage| usage == name);
    let is_known = |usage: &String| {
        usage == purpose || usage == "digital signature" || usage == "key encipherment"
    };
    let fits = has(purpose) && has("digital signature") && usages.iter().all(is_known);
    let mut wanted = [purpose, "digital signature", "key encipherment"];
    wanted.sort_unstable();
    (!fits).then(|| format!("usages did not match [{}]", wanted.join(" ")))
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
