//! One certificate signing request: a new key, the request, the wait for the certificate.

use super::files::Pair;
use crate::AgentError;
use crate::families::Families;
use coracle_client::Client;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SanType};
use std::net::IpAddr;
use std::time::Duration;

pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// A request that is not signed by then is for a person to approve, who is told of it.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub enum Purpose {
    Client,
    /// For TLS servers on the node, under these addresses.
    Serving(Families<IpAddr>),
}

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the key or the request cannot be made")]
    Make(#[from] rcgen::Error),
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the request cannot be watched")]
    Wait(#[from] kube::runtime::wait::Error),
    #[error("the request was denied: {0}")]
    Denied(String),
}

impl RequestError {
    /// In the user's terms; `url` is the server's.
    pub fn into_agent_error(self, url: &str) -> AgentError {
        match self {
            Self::Denied(reason) => AgentError::CertificateDenied { reason },
            Self::Api(kube::Error::Api(status)) if status.code == 401 => AgentError::TokenRefused,
            Self::Api(kube::Error::Api(status)) => AgentError::Refused {
                action: "sign the node's certificate",
                source: Box::new(kube::Error::Api(status)),
            },
            other => AgentError::Unreachable {
                url: url.to_owned(),
                source: Box::new(other),
            },
        }
    }
}

/// Asks, and waits for the signer however long it takes.
pub async fn obtain(
    client: &Client,
    node_name: &str,
    purpose: &Purpose,
) -> Result<Pair, RequestError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(Vec::new())?;
    let name = &mut params.distinguished_name;
    *name = rcgen::DistinguishedName::new();
    name.push(DnType::OrganizationName, "system:nodes");
    name.push(DnType::CommonName, format!("system:node:{node_name}"));
    let (signer, usage) = match purpose {
        Purpose::Client => (CLIENT_SIGNER, "client auth"),
        Purpose::Serving(addresses) => {
            params
                .subject_alt_names
                .push(SanType::DnsName(node_name.try_into()?));
            let addresses = addresses.iter().map(SanType::IpAddress);
            params.subject_alt_names.extend(addresses);
            (SERVING_SIGNER, "server auth")
        }
    };
    let request = params.serialize_request(&key)?.pem()?;
    let object = CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some("csr-".to_owned()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.into_bytes()),
            signer_name: signer.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), usage.to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let posted = api.create(&PostParams::default(), &object).await?;
    let name = posted.metadata.name.unwrap_or_default();
    let waiting = wait(api, &name);
    tokio::pin!(waiting);
    let certificate = match tokio::time::timeout(PATIENCE, &mut waiting).await {
        Ok(certificate) => certificate?,
        Err(_) => {
            tracing::info!(request = name, signer, "a certificate waits to be approved");
            waiting.await?
        }
    };
    Ok(Pair {
        certificate,
        key: key.serialize_pem(),
    })
}

async fn wait(api: Api<CertificateSigningRequest>, name: &str) -> Result<String, RequestError> {
    let is_decided = |request: Option<&CertificateSigningRequest>| {
        request.is_some_and(|request| certificate(request).is_some() || refusal(request).is_some())
    };
    let decided = await_condition(api, name, is_decided).await?;
    let decided = decided.ok_or_else(|| RequestError::Denied("it was deleted".to_owned()))?;
    match (certificate(&decided), refusal(&decided)) {
        (Some(certificate), _) => Ok(certificate),
        (None, reason) => Err(RequestError::Denied(reason.unwrap_or_default())),
    }
}

fn certificate(request: &CertificateSigningRequest) -> Option<String> {
    let bytes = &request.status.as_ref()?.certificate.as_ref()?.0;
    let text = String::from_utf8(bytes.clone()).ok()?;
    (!text.is_empty()).then_some(text)
}

fn refusal(request: &CertificateSigningRequest) -> Option<String> {
    let conditions = request.status.as_ref()?.conditions.as_ref()?;
    let refused = conditions
        .iter()
        .find(|condition| matches!(condition.type_.as_str(), "Denied" | "Failed"))?;
    let reason = refused.reason.clone().unwrap_or_default();
    let message = refused.message.clone().unwrap_or_default();
    Some(if message.is_empty() { reason } else { message })
}
