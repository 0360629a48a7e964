//! Certificate signing requests: approving and signing ask for rights on the signer, and nobody
//! asks the general client signer for `system:masters`.

use super::{Attributes, Operation};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::authorize::Authorizer;
use crate::request_info::RequestInfo;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::Status;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub fn approval(
    authorizer: &Authorizer,
    request: &Object,
    asked: &Attributes<'_>,
) -> Result<(), Status> {
    if !asked.is(GROUP, PLURAL) || asked.subresource != "approval" {
        return Ok(());
    }
    // The stored one: a changed signer name must not buy the rights.
    let signer = asked.old.unwrap_or(request).str(&["spec", "signerName"]);
    if may(authorizer, asked.user, "approve", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    Err(asked.forbidden(Some(request), why))
}

pub fn signing(
    authorizer: &Authorizer,
    request: &Object,
    asked: &Attributes<'_>,
) -> Result<(), Status> {
    let (true, "status", Some(old)) = (asked.is(GROUP, PLURAL), asked.subresource, asked.old)
    else {
        return Ok(());
    };
    let status = |object: &Object, field| json::at(&object.to_value(), &["status", field]).clone();
    let unchanged = ["certificate", "conditions"]
        .iter()
        .all(|field| json::same(&status(old, *field), &status(request, *field)));
    let signer = old.str(&["spec", "signerName"]);
    if unchanged || may(authorizer, asked.user, "sign", signer) {
        return Ok(());
    }
    let why = format!("user not permitted to sign requests with signerName {signer:?}");
    Err(asked.forbidden(Some(request), why))
}

pub fn subject_restriction(request: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !asked.is_main(GROUP, PLURAL)
        || asked.operation != Operation::Create
        || request.str(&["spec", "signerName"]) != CLIENT_SIGNER
    {
        return Ok(());
    }
    let why = match subject(request) {
        Err(why) => format!("failed to parse CSR: {why}"),
        Ok(subject) if subject.organizations.iter().any(|one| one == MASTERS) => {
            format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
        }
        Ok(_) => return Ok(()),
    };
    Err(asked.forbidden(Some(request), why))
}

/// The verb on the signer itself, or on all signers of its domain.
pub fn may(authorizer: &Authorizer, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or(signer);
    [signer.to_owned(), format!("{domain}/*")]
        .into_iter()
        .any(|name| {
            let info = RequestInfo {
                verb: verb.to_owned(),
                group: GROUP.to_owned(),
                version: "*".to_owned(),
                resource: "signers".to_owned(),
                name,
                is_resource_request: true,
                ..RequestInfo::default()
            };
            authorizer.authorize(user, &info).is_allowed()
        })
}

/// Whom a certificate signing request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsrSubject {
    pub common_name: String,
    pub organizations: Vec<String>,
}

/// Reads `spec.request` of a CertificateSigningRequest.
pub fn subject(request: &Object) -> Result<CsrSubject, String> {
    let pem = STANDARD
        .decode(request.str(&["spec", "request"]))
        .map_err(|error| error.to_string())?;
    let block = Pem::iter_from_buffer(&pem)
        .next()
        .and_then(Result::ok)
        .filter(|block| block.label == "CERTIFICATE REQUEST")
        .ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, parsed) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let name = &parsed.certification_request_info.subject;
    Ok(CsrSubject {
        common_name: name
            .iter_common_name()
            .filter_map(|one| one.as_str().ok())
            .last()
            .unwrap_or("")
            .to_owned(),
        organizations: name
            .iter_organization()
            .filter_map(|one| one.as_str().ok())
            .map(str::to_owned)
            .collect(),
    })
}
