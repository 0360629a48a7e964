//! `CONNECT address:port`: a connection from this node, the bytes of which are the request's own.
//!
//! With a pod named in the header `coracle-pod`, as `namespace/name/uid`, the connection is made
//! inside of that pod's network. The method is one that no client's request is passed on with, so
//! that only the server itself can ask for this.

use super::answer::{self, Body, full, refuse};
use super::serve::Server;
use coracle_streams::ports::{Connection, Dial};
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

/// Names the pod in whose network to dial.
pub const POD_HEADER: &str = "coracle-pod";
/// Shorter than the server waits for an answer, so that it is told why.
const DIAL_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("dial tcp {address}: {}", go_text(source))]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("dial tcp {0}: i/o timeout")]
    Timeout(SocketAddr),
    #[error("cannot enter the pod's network: {0}")]
    Enter(io::Error),
}

/// Connects, answers 200 and passes bytes on in both directions until both have ended.
pub async fn answer(server: &Server, mut request: Request<Incoming>) -> Response<Body> {
    let connected = match target(server, &request).await {
        Ok(Target::Node(address)) => from_node(address).await,
        Ok(Target::Pod(namespace, port)) => from_pod(namespace, port).await,
        Err(refusal) => return refusal,
    };
    let mut socket = match connected {
        Ok(socket) => socket,
        Err(error) => return refuse(StatusCode::BAD_GATEWAY, error.to_string()),
    };
    let stream = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(stream) = stream.await else {
            return;
        };
        let mut stream = TokioIo::new(stream);
        // Either side may leave at any time; there is nobody here to tell.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut socket).await;
    });
    Response::new(full(""))
}

enum Target {
    Node(SocketAddr),
    /// None on the host's network.
    Pod(Option<File>, u16),
}

async fn target(server: &Server, request: &Request<Incoming>) -> Result<Target, Response<Body>> {
    let authority = request.uri().authority().map_or("", |one| one.as_str());
    let address: SocketAddr = authority.parse().map_err(|_| {
        let text = format!("{authority:?} is no address and port");
        refuse(StatusCode::BAD_REQUEST, text)
    })?;
    let Some(pod) = request.headers().get(POD_HEADER) else {
        return Ok(Target::Node(address));
    };
    let pod = pod.to_str().unwrap_or_default();
    let [namespace, name, uid] = pod.split('/').collect::<Vec<_>>()[..] else {
        return Err(refuse(StatusCode::BAD_REQUEST, "the pod is not named"));
    };
    let network = network_of(server, namespace, name, uid).await?;
    Ok(Target::Pod(network, address.port()))
}

/// Where a pod's own ports are: None on the host's network.
async fn network_of(
    server: &Server,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<Option<File>, Response<Body>> {
    let (_, observed) = server.find(namespace, name, uid).await?;
    let Some(sandbox) = observed.ready_sandbox() else {
        let text = format!("pod {name} does not run");
        return Err(refuse(StatusCode::BAD_GATEWAY, text));
    };
    let unopened = |error: &dyn std::fmt::Display| {
        let text = format!("cannot open the pod's network: {error}");
        refuse(StatusCode::BAD_GATEWAY, text)
    };
    if sandbox.config.host_network {
        return Ok(None);
    }
    let runtime = &server.stats.context.runtime;
    let status = runtime.sandbox_status(&sandbox.id).await;
    let namespace = status.map_err(|error| unopened(&error))?.network_namespace;
    let namespace = namespace.ok_or_else(|| unopened(&"the runtime does not tell where it is"))?;
    let opened = File::open(namespace).map_err(|error| unopened(&error))?;
    Ok(Some(opened))
}

/// The pod whose ports a client forwards on a connection to this node.
pub struct PodPorts {
    pub server: Server,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Dial for PodPorts {
    fn dial(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, String>> {
        Box::pin(async move {
            let found = network_of(&self.server, &self.namespace, &self.name, &self.uid).await;
            let network = match found {
                Ok(network) => network,
                Err(refusal) => return Err(answer::text(refusal).await),
            };
            match from_pod(network, port).await {
                Ok(connection) => Ok(Box::new(connection) as Box<dyn Connection>),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

async fn from_node(address: SocketAddr) -> Result<TcpStream, DialError> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    connect(socket, address).await
}

/// `localhost`: what listens on IPv4 alone or on IPv6 alone is found by both.
async fn from_pod(namespace: Option<File>, port: u16) -> Result<TcpStream, DialError> {
    let [four, six] = match namespace {
        Some(namespace) => sockets_in(namespace).await.map_err(DialError::Enter)?,
        None => [TcpSocket::new_v4(), TcpSocket::new_v6()],
    };
    let first = connect(four, (IpAddr::from(Ipv4Addr::LOCALHOST), port).into()).await;
    let Err(error) = first else {
        return first;
    };
    let second = connect(six, (IpAddr::from(Ipv6Addr::LOCALHOST), port).into()).await;
    second.map_err(|_| error)
}

async fn connect(
    socket: io::Result<TcpSocket>,
    address: SocketAddr,
) -> Result<TcpStream, DialError> {
    let connected = async { socket?.connect(address).await };
    let stream = match tokio::time::timeout(DIAL_MAX, connected).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(DialError::Connect { address, source }),
        Err(_) => return Err(DialError::Timeout(address)),
    };
    // Small packets of a conversation go out at once; where that cannot be set, they go later.
    drop(stream.set_nodelay(true));
    Ok(stream)
}

/// A socket belongs to the network that it was made in, whoever uses it then. The thread is used
/// for nothing else: it ends in the other namespace.
async fn sockets_in(namespace: File) -> io::Result<[io::Result<TcpSocket>; 2]> {
    let (done, made) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("pod-dial".to_owned())
        .spawn(move || {
            let entered = setns(namespace, CloneFlags::CLONE_NEWNET);
            let sockets = entered
                .map(|()| [TcpSocket::new_v4(), TcpSocket::new_v6()])
                .map_err(io::Error::from);
            // Nobody waits any more when the request is gone.
            let _ = done.send(sockets);
        })?;
    made.await.map_err(io::Error::other)?
}

/// A failed connect in the words of Go's `net`, which clients know.
fn go_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => format!("connect: {}", Errno::from_raw(code).desc().to_lowercase()),
        None => format!("connect: {error}"),
    }
}
