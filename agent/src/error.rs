//! What ends an agent or a wipe, in the user's terms.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("{url:?} is no address of a server")]
    ServerUrl {
        url: String,
        source: coracle_client::connect::EndpointError,
    },
    #[error(
        "the node has no certificate yet and no token was given; `coracle token create` on \
             the server makes one"
    )]
    TokenMissing,
    #[error("the token is malformed; it looks like coracle1.<hash>.<id>.<secret>")]
    TokenMalformed,
    #[error(
        "the server refused the token: it is unknown or has expired; `coracle token create` \
             on the server makes a new one"
    )]
    TokenRefused,
    #[error(
        "the server at {url} is not the one that made the token: its certificate authority \
             has another hash"
    )]
    OtherServer { url: String },
    #[error("the name {name:?} is taken by a node that is alive; choose another with --node-name")]
    NameTaken { name: String },
    #[error("the server denied the node its certificate: {reason}")]
    CertificateDenied { reason: String },
    #[error("the server at {url} cannot be reached")]
    Unreachable {
        url: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the server refused to {action}")]
    Refused {
        action: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the key or certificate in {path} cannot be used")]
    Identity {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot {action} {path}")]
    Disk {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} cannot be a link to this agent's directory; see --kubelet-dir")]
    KubeletDir {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the kubeconfig {path} cannot be used")]
    Kubeconfig {
        path: PathBuf,
        source: Box<coracle_client::connect::kubeconfig::KubeconfigError>,
    },
    #[error(
        "the server refused what {path} shows: it is unknown or has expired; a bootstrap token of \
             that cluster is needed"
    )]
    KubeconfigRefused { path: PathBuf },
    #[error("cannot listen on {address}; --kubelet-port takes another port")]
    Listen {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    #[error("the node's port cannot be served")]
    Tls(#[source] rustls::Error),
    #[error("a certificate for the node's port cannot be made")]
    Serving(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("another agent runs on {path}")]
    DataDirBusy { path: PathBuf },
    #[error("more is kept from pods than this machine has: {0}")]
    Reservations(String),
    #[error("the container runtime does not start")]
    Runtime(#[from] crate::runtime::RuntimeError),
    #[error("the node's network cannot be set up")]
    Network(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[derive(Debug, thiserror::Error)]
pub enum WipeError {
    #[error("an agent still runs on {path}; stop it first")]
    DataDirBusy { path: PathBuf },
    #[error("the containers cannot be taken away")]
    Runtime(#[from] crate::runtime::RuntimeError),
    #[error("cannot {action} {path}")]
    Disk {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the pods' network cannot be taken away")]
    Network(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// An error with what it is due to, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let part = cause.to_string();
        if !text.ends_with(&part) {
            text = format!("{text}: {part}");
        }
        source = cause.source();
    }
    text
}
