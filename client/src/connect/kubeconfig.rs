//! Reads a kubeconfig, so that every part runs against any API server.
//!
//! Certificates, tokens and token files are supported. Credential plugins are not: this code
//! runs no programs. Paths in the file are relative to the file, as for kubectl.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::{Endpoint, EndpointError, Identity, IdentityError, Trust, TrustError};

/// A context of a kubeconfig, ready to connect.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub endpoint: Endpoint,
    /// The namespace of the context, `default` if it has none.
    pub namespace: String,
}

#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the kubeconfig is not valid")]
    Parse(#[from] serde_yaml_ng::Error),
    #[error("the kubeconfig has no {kind} named {name:?}")]
    Missing { kind: &'static str, name: String },
    #[error("{field} is not base64")]
    Base64 {
        field: &'static str,
        source: base64::DecodeError,
    },
    #[error("{field} is not supported")]
    Unsupported { field: &'static str },
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Loads a file; `context` overrides its current context.
pub fn load(path: &Path, context: Option<&str>) -> Result<Loaded, KubeconfigError> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    parse(&String::from_utf8_lossy(&text), folder, context)
}

/// Loads a text; its relative paths start at `folder`.
pub fn parse(text: &str, folder: &Path, context: Option<&str>) -> Result<Loaded, KubeconfigError> {
    let file: File = serde_yaml_ng::from_str(text)?;
    let name = context.unwrap_or(&file.current_context);
    let context = find(&file.contexts, "context", name, |one| &one.name)?;
    let context = &context.context;
    let cluster = find(&file.clusters, "cluster", &context.cluster, |one| &one.name)?;
    let cluster = &cluster.cluster;
    let identity = if context.user.is_empty() {
        Identity::anonymous()
    } else {
        let user = find(&file.users, "user", &context.user, |one| &one.name)?;
        identity(&user.user, folder)?
    };
    let mut endpoint = Endpoint::new(&cluster.server, trust(cluster, folder)?, identity)?;
    if let Some(name) = &cluster.tls_server_name {
        endpoint = endpoint.with_server_name(name);
    }
    let namespace = context
        .namespace
        .clone()
        .filter(|namespace| !namespace.is_empty());
    Ok(Loaded {
        endpoint,
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
    })
}

fn find<'a, T>(
    all: &'a [T],
    kind: &'static str,
    name: &str,
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, KubeconfigError> {
    let found = all.iter().find(|one| name_of(one) == name);
    found.ok_or_else(|| KubeconfigError::Missing {
        kind,
        name: name.to_owned(),
    })
}

fn trust(cluster: &Cluster, folder: &Path) -> Result<Trust, KubeconfigError> {
    if cluster.insecure_skip_tls_verify {
        return Ok(Trust::Anybody);
    }
    let field = "certificate-authority-data";
    let data = cluster.certificate_authority_data.as_deref();
    match data_or_file(
        field,
        data,
        cluster.certificate_authority.as_deref(),
        folder,
    )? {
        Some(pem) => Ok(Trust::from_pem(&pem)?),
        None if cluster.server.starts_with("https:") => Ok(Trust::system()?),
        None => Ok(Trust::Anybody), // Without TLS there is nobody to believe.
    }
}

fn identity(user: &User, folder: &Path) -> Result<Identity, KubeconfigError> {
    if user.exec.is_some() {
        return Err(KubeconfigError::Unsupported { field: "exec" });
    }
    if user.auth_provider.is_some() {
        return Err(KubeconfigError::Unsupported {
            field: "auth-provider",
        });
    }
    if user.username.is_some() {
        return Err(KubeconfigError::Unsupported { field: "username" });
    }
    let identity = match (&user.token, &user.token_file) {
        (Some(token), _) => Identity::from_token(token)?,
        (None, Some(path)) => Identity::from_token_file(folder.join(path)),
        (None, None) => Identity::anonymous(),
    };
    let certificate = data_or_file(
        "client-certificate-data",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
        folder,
    )?;
    let key = data_or_file(
        "client-key-data",
        user.client_key_data.as_deref(),
        user.client_key.as_deref(),
        folder,
    )?;
    if let (Some(certificate), Some(key)) = (certificate, key) {
        identity.set_certificate(&certificate, &key)?;
    }
    Ok(identity)
}

/// Data in the file itself wins over a path, as for kubectl.
fn data_or_file(
    field: &'static str,
    data: Option<&str>,
    path: Option<&str>,
    folder: &Path,
) -> Result<Option<Vec<u8>>, KubeconfigError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let bytes = BASE64_STANDARD.decode(data);
        return bytes
            .map(Some)
            .map_err(|source| KubeconfigError::Base64 { field, source });
    }
    path.filter(|path| !path.is_empty())
        .map(|path| read(&folder.join(path)))
        .transpose()
}

fn read(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    std::fs::read(path).map_err(|source| KubeconfigError::Read {
        path: path.to_owned(),
        source,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    username: Option<String>,
    exec: Option<serde_yaml_ng::Value>,
    auth_provider: Option<serde_yaml_ng::Value>,
}
