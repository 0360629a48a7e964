//! `/coracle/v1/snapshot`: a snapshot of the running server, streamed. GET gives one without keys to
//! whoever may get that path; POST gives one with them to members of `system:masters`, sealed with
//! the key in the body, which the client made of its passphrase.
//!
//! One at a time. The writer of the store is kept for the time of a few clones of a pointer, and
//! memory for what goes out is bounded however slowly the client reads; one that takes nothing for
//! a while is let go, since what is superseded meanwhile stays in memory.

use super::frame::{self, Header};
use super::key_files::{KeyFiles, KeySource, ca_fingerprint};
use super::passphrase::{SealedKeys, SealingKey};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::body;
use crate::request_info::RequestInfo;
use crate::respond;
use crate::tunnel::{Body, BoxError};
use bytes::Bytes;
use coracle_api::status::Status;
use coracle_api::timestamp;
use coracle_store::Store;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub const PATH: &str = "/coracle/v1/snapshot";
/// What waits for a client that reads slowly; then the work waits.
const PIECES_MAX: usize = 4;
const PIECE_BYTES: usize = 64 * 1024;
/// Within this a client takes a piece, or it is gone.
const PIECE_WAIT: Duration = Duration::from_secs(30);
/// When to ask again while another one is being taken.
const RETRY_AFTER_SECONDS: u32 = 5;

/// Whether a client asks for the keys too.
#[derive(Debug)]
pub enum WithKeys<'a> {
    No,
    Sealed(&'a SealingKey),
}

pub(crate) fn is_path(info: &RequestInfo) -> bool {
    !info.is_resource_request && info.path == PATH
}

/// What snapshots are made of, beside the store.
#[derive(Debug)]
pub struct Snapshots {
    source: KeySource,
    turn: Arc<Semaphore>,
}

impl WithKeys<'_> {
    /// The request that asks for a snapshot.
    pub fn request(&self) -> http::Request<Vec<u8>> {
        let (method, body) = match self {
            Self::No => (Method::GET, Vec::new()),
            Self::Sealed(key) => (Method::POST, key.to_text().into_bytes()),
        };
        let request = http::Request::builder().method(method).uri(PATH);
        request
            .body(body)
            .expect("a constant request is well formed")
    }
}

impl Snapshots {
    pub fn new(source: KeySource) -> Self {
        Self {
            source,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) async fn answer(
        &self,
        method: &Method,
        body: Body,
        user: &User,
        store: &Store,
        (now, shutdown): (Timestamp, CancellationToken),
    ) -> Result<Response<Body>, Status> {
        let sealing = match *method {
            Method::GET => None,
            Method::POST => Some(sealing_key(body, user).await?),
            _ => return Ok(respond::page_not_found()),
        };
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else {
            let why = "another snapshot is being taken";
            return Err(Status::too_many_requests(why, RETRY_AFTER_SECONDS));
        };
        let source = self.source.clone();
        let keys = tokio::task::spawn_blocking(move || keys(&source, sealing.as_ref()));
        let (ca, keys) = keys.await.map_err(Status::internal)??;
        let header = Header {
            created: timestamp::format_time(now),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ca,
            keys,
        };
        let objects = store.freeze().await;
        let objects = objects.map_err(|error| Status::service_unavailable(error.to_string()))?;
        tracing::info!(
            user = %user.name,
            revision = objects.revision().0,
            with_keys = header.keys.is_some(),
            "a snapshot is taken"
        );
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let pieces = Pieces {
                sender,
                runtime,
                shutdown,
                _turn: turn,
            };
            let mut out = BufWriter::with_capacity(PIECE_BYTES, pieces);
            if let Err(error) = frame::write(&mut out, &header, &objects) {
                tracing::warn!(%error, "a snapshot was not taken to its end");
                // What is left would make it look like more than it is.
                let (pieces, _) = out.into_parts();
                let _ = pieces.send(Err(error.into()));
            }
        });
        Ok(streamed(pieces))
    }
}

/// Only those whom nobody can take anything away from get what would make others like them.
async fn sealing_key(body: Body, user: &User) -> Result<SealingKey, Status> {
    if !user.groups.iter().any(|group| group == MASTERS) {
        return Err(Status {
            code: 403,
            reason: "Forbidden".into(),
            message: format!(
                "the cluster's keys are given to members of {MASTERS} only: take the snapshot \
                 without a passphrase, or with another kubeconfig"
            ),
            details: serde_json::Value::Null,
        });
    }
    let text = body::read(body).await?;
    SealingKey::from_text(&text).ok_or_else(|| {
        Status::bad_request("the body is no key to encrypt the snapshot's keys with")
    })
}

type OfKeys = (Option<String>, Option<SealedKeys>);

fn keys(source: &KeySource, sealing: Option<&SealingKey>) -> Result<OfKeys, Status> {
    let ca = ca_fingerprint(&source.pki).map_err(Status::internal)?;
    let Some(sealing) = sealing else {
        return Ok((ca, None));
    };
    let files = KeyFiles::gather(source).map_err(Status::internal)?;
    Ok((ca, Some(sealing.seal(&files))))
}

fn streamed(pieces: mpsc::Receiver<Result<Bytes, BoxError>>) -> Response<Body> {
    let frames = futures::stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((piece.map(Frame::data), pieces))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    let bytes = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, bytes);
    response
}

/// Hands what is written to the connection, and waits while it is full.
struct Pieces {
    sender: mpsc::Sender<Result<Bytes, BoxError>>,
    runtime: Handle,
    shutdown: CancellationToken,
    _turn: OwnedSemaphorePermit,
}

impl Pieces {
    fn send(&self, piece: Result<Bytes, BoxError>) -> io::Result<()> {
        let sent = tokio::time::timeout(PIECE_WAIT, self.sender.send(piece));
        let sent = self
            .runtime
            .block_on(self.shutdown.run_until_cancelled(sent));
        match sent {
            Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(_))) => Err(io::Error::other("the client is gone")),
            Some(Err(_)) => Err(io::Error::other("the client reads nothing")),
            None => Err(io::Error::other("the server stops")),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        self.send(Ok(Bytes::copy_from_slice(piece)))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
