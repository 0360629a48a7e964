//! Calls of gRPC services: one question, and one answer or a stream of them, without TLS.
//!
//! A `Channel` has one HTTP/2 connection, made at the first call and anew once the peer has gone.
//! No call is repeated by itself when the peer may have seen it. Messages are bounded, and not
//! compressed. Errors are `Status`es in the words of Go's library, which stand in pods' events.

mod answers; // Messages and the status at their end.
mod endpoint; // Where a service is.
mod frame; // Messages in a stream of bytes. Pure.
mod status;
#[cfg(test)]
pub(crate) mod testing; // A server that a test makes up.

pub use answers::Answers;
pub use endpoint::Endpoint;
pub use status::{Code, Status};

use crate::error::chain;
use bytes::{BufMut, Bytes, BytesMut};
use frame::PREFIX_BYTES;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// The header's number has at most eight digits.
const TIMEOUT_MS_MAX: u128 = 99_999_999;
/// A peer that does not take a connection within this is not there.
const CONNECT_MAX: Duration = Duration::from_secs(20);

type Sender = SendRequest<Full<Bytes>>;

/// Calls to one peer; they share a connection.
pub struct Channel {
    endpoint: Endpoint,
    message_bytes_max: usize,
    user_agent: String,
    sender: tokio::sync::Mutex<Option<Sender>>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel({})", self.endpoint)
    }
}

impl Channel {
    /// Connects when it is first used.
    pub fn new(endpoint: Endpoint, message_bytes_max: usize) -> Self {
        Self {
            endpoint,
            message_bytes_max,
            user_agent: format!("coracle/{}", env!("CARGO_PKG_VERSION")),
            sender: tokio::sync::Mutex::default(),
        }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// For callers who tell a peer that is not there from one that does not answer.
    pub async fn connect(&self) -> Result<(), Status> {
        self.sender().await.map(drop)
    }

    /// One question, one answer. `path` is `/package.Service/Method`.
    pub async fn unary<A: Message + Default>(
        &self,
        path: &str,
        question: &impl Message,
        within: Duration,
    ) -> Result<A, Status> {
        let answered = async {
            let mut answers: Answers<A> = self.call(path, question, Some(within)).await?;
            let answer = answers.next().await?;
            let answer = answer.ok_or_else(|| Status::internal("there is no message"))?;
            match answers.next().await? {
                None => Ok(answer),
                Some(_) => Err(Status::internal("there is more than one message")),
            }
        };
        bounded(within, answered).await
    }

    /// One question, answers until either side ends it. Dropping them ends the call.
    pub async fn stream<A: Message + Default>(
        &self,
        path: &str,
        question: &impl Message,
    ) -> Result<Answers<A>, Status> {
        self.call(path, question, None).await
    }

    async fn call<A>(
        &self,
        path: &str,
        question: &impl Message,
        within: Option<Duration>,
    ) -> Result<Answers<A>, Status> {
        let mut request = self.request(path, framed(question)?, within)?;
        let mut sender = self.sender().await?;
        // The connection may have ended since it was looked at: then nothing was sent.
        for _ in 0..2 {
            match sender.try_send_request(request).await {
                Ok(response) => return self.answers(response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Status::unavailable(chain(error.error()))),
                },
            }
            *self.sender.lock().await = None;
            sender = self.sender().await?;
        }
        Err(Status::unavailable("the connection is closed"))
    }

    fn answers<A>(&self, response: Response<Incoming>) -> Result<Answers<A>, Status> {
        Answers::new(response, self.message_bytes_max)
    }

    fn request(
        &self,
        path: &str,
        body: Bytes,
        within: Option<Duration>,
    ) -> Result<Request<Full<Bytes>>, Status> {
        let uri = format!("http://{}{path}", self.endpoint.authority());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", &self.user_agent);
        if let Some(within) = within {
            let timeout = within.as_millis().clamp(1, TIMEOUT_MS_MAX);
            request = request.header("grpc-timeout", format!("{timeout}m"));
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| Status::internal(error.to_string()))
    }

    /// Of the connection that there is, or of a new one.
    async fn sender(&self) -> Result<Sender, Status> {
        let mut known = self.sender.lock().await;
        if let Some(sender) = known.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let opened = tokio::time::timeout(CONNECT_MAX, self.open()).await;
        let sender = match opened {
            Ok(Ok(sender)) => sender,
            Ok(Err(error)) => return Err(self.undialed(&error)),
            Err(_) => return Err(self.undialed(&io::ErrorKind::TimedOut.into())),
        };
        *known = Some(sender.clone());
        Ok(sender)
    }

    fn undialed(&self, error: &io::Error) -> Status {
        let why = match error.raw_os_error() {
            Some(code) => nix::errno::Errno::from_raw(code).desc().to_lowercase(),
            None => error.to_string(),
        };
        let dialed = self.endpoint.dialed();
        Status::unavailable(format!(
            "connection error: desc = \"transport: Error while dialing: dial {dialed}: connect: \
             {why}\""
        ))
    }

    async fn open(&self) -> io::Result<Sender> {
        match &self.endpoint {
            Endpoint::Unix(path) => shake_hands(UnixStream::connect(path).await?).await,
            Endpoint::Tcp(address) => shake_hands(TcpStream::connect(address).await?).await,
        }
    }
}

async fn shake_hands(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
) -> io::Result<Sender> {
    let stream = TokioIo::new(stream);
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await;
    let (sender, connection) = shaken.map_err(io::Error::other)?;
    // Ends with the peer, or when no call and no channel has the sender any more.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection of gRPC ended");
        }
    });
    Ok(sender)
}

async fn bounded<T>(
    within: Duration,
    answered: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let answered = tokio::time::timeout(within, answered).await;
    answered.unwrap_or_else(|_| {
        let message = "context deadline exceeded";
        Err(Status::new(Code::DEADLINE_EXCEEDED, message))
    })
}

/// A message with its prefix.
fn framed(message: &impl Message) -> Result<Bytes, Status> {
    let bytes = message.encoded_len();
    let length = u32::try_from(bytes);
    let length = length.map_err(|_| Status::internal("the message is too large"))?;
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + bytes);
    framed.put_u8(0);
    framed.put_u32(length);
    let encoded = message.encode(&mut framed);
    encoded.map_err(|error| Status::internal(error.to_string()))?;
    Ok(framed.freeze())
}

#[cfg(test)]
mod tests;
