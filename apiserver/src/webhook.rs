//! Calls to webhooks: one POST of a review over TLS to a URL or to a Service, and its answer.
//!
//! For admission and for the conversion of custom resources. Says what went wrong in the words of
//! upstream's client. Connections are kept and used again within bounds; what a server says is read
//! up to a bound; a Service's endpoints are dialled by their nodes, as this server is not on the
//! pods' network. Never follows a redirect, and shows no credentials of its own.

mod answer; // What the server's status and body mean. Pure.
mod config; // Where a webhook is. Pure.
mod endpoint; // Which endpoint of a Service is dialled.
mod pool; // Connections that are kept.
mod words; // Failures of connections in upstream's words. Pure.

use crate::fetch;
use crate::proxy::{self, Duplex};
use crate::tunnel::Tunnels;
use crate::view::View;
use answer::Head;
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use pool::Pool;
use rustls::ClientConfig as Tls;
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_rustls::TlsConnector;

pub use config::{Address, ClientConfig, Service};
pub use endpoint::find as endpoint;
pub use words::{of_http as http_words, of_tls as tls_words};

/// An object with what a patch makes of it, base64 included, is some megabytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Webhooks whose client is kept: trust and connections.
const CLIENTS_MAX: usize = 64;
/// A kept connection whose other end is gone is found out when it is used: so many are tried
/// before a new one is made.
const REUSE_TRIES_MAX: usize = 2;
const AGENT: &str = "kube-apiserver-admission";

/// Why a webhook gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Its configuration makes no client.
    #[error("{0}")]
    Unusable(String),
    /// It was not reached, or broke off.
    #[error("Post {url:?}: {why}")]
    Unreached { url: String, why: String },
    /// It answered with something else than what was asked for.
    #[error("{message}")]
    Answer { message: String, code: u16 },
}

/// What connects to webhooks. One for the server.
pub struct Caller {
    view: Arc<dyn View>,
    tunnels: Tunnels,
    clients: Mutex<BTreeMap<ClientConfig, Kept>>,
    uses: AtomicU64,
}

struct Kept {
    client: Arc<Client>,
    last_use: u64,
}

/// The answer, or an error that has the request with it when none of it was sent.
type Sent = Result<http::Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// One webhook's trust and connections.
struct Client {
    address: Address,
    /// Host and port as they stand in the URL.
    authority: String,
    path: String,
    name: ServerName<'static>,
    tls: Arc<Tls>,
    pool: Arc<Pool>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Caller {
    pub fn new(view: Arc<dyn View>, tunnels: Tunnels) -> Self {
        Self {
            view,
            tunnels,
            clients: Mutex::default(),
            uses: AtomicU64::new(0),
        }
    }

    /// Sends a review and gives the JSON that came back, within a time of which the webhook is
    /// told in whole seconds.
    pub async fn post(
        &self,
        config: &ClientConfig,
        review: Bytes,
        within: Duration,
    ) -> Result<Bytes, CallError> {
        let client = self.client(config)?;
        let query = client.query(within);
        let unreached = |why: String| CallError::Unreached {
            url: format!("https://{}{query}", client.authority),
            why,
        };
        let exchanged = tokio::time::timeout(within, self.exchange(&client, &query, review));
        match exchanged.await {
            Err(_) => Err(unreached("context deadline exceeded".to_owned())),
            Ok(Err(why)) => Err(unreached(why)),
            Ok(Ok((head, body))) => answer::read(&head, body)
                .map_err(|(message, code)| CallError::Answer { message, code }),
        }
    }

    fn client(&self, config: &ClientConfig) -> Result<Arc<Client>, CallError> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut clients = self.clients.lock();
        if let Some(kept) = clients.get_mut(config) {
            kept.last_use = now;
            return Ok(Arc::clone(&kept.client));
        }
        let client = Arc::new(Client::new(config).map_err(CallError::Unusable)?);
        if clients.len() >= CLIENTS_MAX {
            let oldest = clients.iter().min_by_key(|(_, kept)| kept.last_use);
            if let Some(oldest) = oldest.map(|(config, _)| config.clone()) {
                clients.remove(&oldest);
            }
        }
        let kept = Kept {
            client: Arc::clone(&client),
            last_use: now,
        };
        clients.insert(config.clone(), kept);
        Ok(client)
    }

    async fn exchange(
        &self,
        client: &Client,
        query: &str,
        review: Bytes,
    ) -> Result<(Head, Bytes), String> {
        for _ in 0..REUSE_TRIES_MAX {
            let Some(mut sender) = client.pool.take() else {
                break;
            };
            if sender.ready().await.is_err() {
                continue;
            }
            match client.send(&mut sender, query, review.clone()).await {
                // The other end had closed it before any of the review was sent. Of one that was
                // sent nobody knows what the webhook made of it.
                Err(error) if error.message().is_some() => {}
                sent => return client.received(sender, sent).await,
            }
        }
        let stream = self.dial(client).await?;
        let mut sender = client.pool.begin(stream).await?;
        let sent = client.send(&mut sender, query, review).await;
        client.received(sender, sent).await
    }

    async fn dial(&self, client: &Client) -> Result<Box<dyn Duplex>, String> {
        match &client.address {
            Address::Url { host, port } => {
                let dialled = fetch::dial(&client.tls, host, *port).await;
                Ok(Box::new(dialled.map_err(words::of_fetch)?))
            }
            Address::Service(service) => {
                let place = endpoint::find(self.view.as_ref(), &self.tunnels, service)?;
                let raw = proxy::raw(&self.tunnels, &place).await;
                let (raw, _) = raw.map_err(|error| error.to_string())?;
                let connector = TlsConnector::from(Arc::clone(&client.tls));
                let shaken = connector.connect(client.name.clone(), raw).await;
                Ok(Box::new(shaken.map_err(|error| words::of_tls(&error))?))
            }
        }
    }
}

impl Client {
    fn new(config: &ClientConfig) -> Result<Self, String> {
        let authority_pem = config.ca_bundle.as_deref();
        let tls = fetch::trusting(authority_pem).map_err(|error| match authority_pem {
            Some(_) => format!("unable to load root certificates: {error}"),
            None => error.to_string(),
        })?;
        let host = config.address.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned());
        Ok(Self {
            name: name.map_err(|_| format!("{bare:?} is no name of a server"))?,
            authority: config.authority(),
            path: config.path.clone(),
            address: config.address.clone(),
            tls,
            pool: Arc::default(),
        })
    }

    /// Path and query. A second that has begun counts.
    fn query(&self, within: Duration) -> String {
        let seconds = within.as_secs() + u64::from(within.subsec_nanos() > 0);
        format!("{}?timeout={seconds}s", self.path)
    }

    async fn send(
        &self,
        sender: &mut SendRequest<Full<Bytes>>,
        query: &str,
        review: Bytes,
    ) -> Sent {
        let request = Request::post(query)
            .header(HOST, self.authority.as_str())
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(review))
            .expect("path and host were checked with the configuration");
        sender.try_send_request(request).await
    }

    /// Reads the answer, and keeps the connection when it can be used again.
    async fn received(
        &self,
        sender: SendRequest<Full<Bytes>>,
        sent: Sent,
    ) -> Result<(Head, Bytes), String> {
        let response = sent.map_err(|error| words::of_http(error.error()))?;
        let (parts, body) = response.into_parts();
        let head = Head::of(&parts);
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| {
            format!(
                "unexpected error when reading response body. Please retry. Original error: {error}"
            )
        })?;
        Pool::put(&self.pool, sender);
        Ok((head, body.to_bytes()))
    }
}

#[cfg(test)]
mod tests;
