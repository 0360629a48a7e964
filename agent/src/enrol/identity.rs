//! The node's client certificate: found on disk, or got with a token.

use super::files::{Files, Pair};
use super::lifetime::Lifetime;
use super::request::{Purpose, obtain};
use super::token::{Token, parse_token};
use crate::{AgentError, Config};
use coracle_client::clock::Clock;
use coracle_client::connect::{
    self, DialError, Endpoint, EnrolError, Identity, Trust, fetch_pinned_ca,
};
use rand::RngExt;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::time::Duration;

pub const CLIENT: &str = "client";
const CA_PATH: &str = "/coracle/v1/ca";
/// A server that has just been started gets this long to answer a node that enrols.
const SERVER_WAIT_MAX: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(500);

/// A node with an identity.
#[derive(Clone, Debug)]
pub struct Enrolled {
    pub endpoint: Endpoint,
    pub identity: Identity,
    pub files: Files,
    /// It has just got its first certificate.
    pub is_new: bool,
}

impl Enrolled {
    /// The certificate will not be used again.
    pub fn forget(&self) -> Result<(), AgentError> {
        self.files.remove_pair(CLIENT)
    }
}

/// A certificate on disk that is still valid is used; else the token gets a new one.
pub async fn enrol(config: &Config, clock: &Clock) -> Result<Enrolled, AgentError> {
    if let Some(joining) = &config.joining {
        return super::joining::join(config, joining, clock).await;
    }
    let files = Files::open(&config.data_dir)?;
    let token = match config.token.as_deref() {
        Some(text) => Some(parse_token(text).ok_or(AgentError::TokenMalformed)?),
        None => None,
    };
    if let Some(enrolled) = known(config, &files, token.as_ref(), clock)? {
        return Ok(enrolled);
    }
    let token = token.ok_or(AgentError::TokenMissing)?;
    let authority = authority(config, &token, clock).await?;
    let endpoint = endpoint(config, &authority)?;
    let bearer = Identity::from_token(&token.bearer()).map_err(|_| AgentError::TokenMalformed)?;
    let client = connect::client(&endpoint.clone().with_identity(bearer));
    let pair = obtain(&client, &config.node_name, &Purpose::Client).await;
    let pair = pair.map_err(|error| error.into_agent_error(&config.server_url))?;
    files.set_authority(&authority)?;
    files.set_pair(CLIENT, &pair)?;
    let identity = identity(&files, &pair.certificate, &pair.key)?;
    tracing::info!(node = config.node_name, "enrolled");
    Ok(Enrolled {
        endpoint: endpoint.with_identity(identity.clone()),
        identity,
        files,
        is_new: true,
    })
}

pub fn identity(files: &Files, certificate: &str, key: &str) -> Result<Identity, AgentError> {
    let identity = Identity::from_certificate(certificate.as_bytes(), key.as_bytes());
    identity.map_err(|source| AgentError::Identity {
        path: files.path("client.pem"),
        source: Box::new(source),
    })
}

/// None when there is none, or when it is expired, of another name or of another server than the
/// token's: then it is worth nothing.
fn known(
    config: &Config,
    files: &Files,
    token: Option<&Token>,
    clock: &Clock,
) -> Result<Option<Enrolled>, AgentError> {
    let (Some(authority), Some(pair)) = (files.authority()?, files.pair(CLIENT)?) else {
        return Ok(None);
    };
    let is_other_server = token.is_some_and(|token| hash(&authority) != Some(token.ca_hash));
    if is_other_server || !is_valid(&pair, &config.node_name, clock) {
        return Ok(None);
    }
    let identity = identity(files, &pair.certificate, &pair.key)?;
    let endpoint = endpoint(config, &authority)?;
    Ok(Some(Enrolled {
        endpoint: endpoint.with_identity(identity.clone()),
        identity,
        files: files.clone(),
        is_new: false,
    }))
}

pub fn is_valid(pair: &Pair, node_name: &str, clock: &Clock) -> bool {
    let name = format!("system:node:{node_name}");
    let life = Lifetime::of(&pair.certificate);
    life.is_some_and(|life| life.common_name == name && clock.now() < life.not_after)
}

fn hash(authority_pem: &str) -> Option<[u8; 32]> {
    let der = CertificateDer::from_pem_slice(authority_pem.as_bytes()).ok()?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &der);
    digest.as_ref().try_into().ok()
}

fn endpoint(config: &Config, authority: &str) -> Result<Endpoint, AgentError> {
    let trust = Trust::from_pem(authority.as_bytes()).map_err(|source| AgentError::Refused {
        action: "show a certificate authority that can be used",
        source: Box::new(source),
    })?;
    endpoint_with(config, trust)
}

fn endpoint_with(config: &Config, trust: Trust) -> Result<Endpoint, AgentError> {
    let endpoint = Endpoint::new(&config.server_url, trust, Identity::anonymous());
    endpoint.map_err(|source| AgentError::ServerUrl {
        url: config.server_url.clone(),
        source,
    })
}

async fn authority(config: &Config, token: &Token, clock: &Clock) -> Result<String, AgentError> {
    let endpoint = endpoint_with(config, Trust::Anybody)?;
    let url = &config.server_url;
    let begun = clock.monotonic();
    loop {
        let error = match fetch_pinned_ca(&endpoint, CA_PATH, &token.ca_hash).await {
            Ok(authority) => return Ok(authority),
            Err(EnrolError::OtherAuthority) => {
                return Err(AgentError::OtherServer { url: url.clone() });
            }
            Err(error) => error,
        };
        let may_come = matches!(
            error,
            EnrolError::Dial(DialError::Connect { .. } | DialError::Timeout { .. })
        );
        if !may_come || begun.elapsed() > SERVER_WAIT_MAX {
            return Err(AgentError::Unreachable {
                url: url.clone(),
                source: Box::new(error),
            });
        }
        let jitter = rand::rng().random_range(0.5..1.5);
        tokio::time::sleep(RETRY.mul_f64(jitter)).await;
    }
}

#[cfg(test)]
mod tests;
