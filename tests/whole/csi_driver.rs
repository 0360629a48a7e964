//! A driver of volumes for tests: directories, bound to where the node wants them. It reads and
//! writes messages by the numbers of their fields, as the interface has them.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use tokio::net::UnixListener;

pub const NAME: &str = "test.csi.example";
const NONE: Option<&str> = None;

/// A question to the Node service: texts, and maps, by field.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub method: String,
    texts: BTreeMap<u64, String>,
    pub maps: BTreeMap<u64, BTreeMap<String, String>>,
}

impl Asked {
    fn text(&self, field: u64) -> PathBuf {
        PathBuf::from(self.texts.get(&field).cloned().unwrap_or_default())
    }
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    /// The method that waits until this is something else.
    held: String,
}

struct Shared {
    volumes: PathBuf,
    endpoint: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

/// Dropped, it is gone with its sockets; what it mounted stays.
pub struct Driver {
    shared: Arc<Shared>,
    sockets: [PathBuf; 2],
    _runtime: tokio::runtime::Runtime,
}

impl Driver {
    /// `kubelet` is the agent's own directory, `volumes` where what is written is kept.
    pub fn start(kubelet: &Path, volumes: &Path) -> Self {
        let registry = kubelet.join("plugins_registry");
        let own = kubelet.join("plugins").join(NAME);
        for directory in [&registry, &own, &volumes.to_owned()] {
            fs::create_dir_all(directory).unwrap();
        }
        let sockets = [own.join("csi.sock"), registry.join("test-reg.sock")];
        let shared = Arc::new(Shared {
            volumes: volumes.to_owned(),
            endpoint: sockets[0].clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        for socket in &sockets {
            let _ = fs::remove_file(socket);
            let _entered = runtime.enter();
            let listener = UnixListener::bind(socket).unwrap();
            runtime.spawn(serve(listener, shared.clone()));
        }
        Self {
            shared,
            sockets,
            _runtime: runtime,
        }
    }

    /// What was asked of it so far that changes something, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state.lock().unwrap().asked.clone()
    }

    pub fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.method).collect()
    }

    /// From now on that method is not answered; nothing lets all go on.
    pub fn hold(&self, method: &str) {
        self.shared.state.lock().unwrap().held = method.to_owned();
        self.shared.changed.notify_all();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.hold("");
        for socket in &self.sockets {
            let _ = fs::remove_file(socket);
        }
    }
}

async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        let service = hyper::service::service_fn(move |request| respond(request, shared.clone()));
        tokio::spawn(async move {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await
        });
    }
}

/// A body whose frames are there already.
struct Frames(std::vec::IntoIter<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

async fn respond(
    request: http::Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<http::Response<Frames>, Infallible> {
    let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let asked = read(method, &body[5..]);
    let done = tokio::task::spawn_blocking(move || shared.answer(&asked)).await;
    let (answer, status) = match done.unwrap() {
        Ok(answer) => (answer, "0"),
        Err(error) => (error.to_string().into_bytes(), "13"),
    };
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    let mut frames = Vec::new();
    if status == "0" {
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(u32::try_from(answer.len()).unwrap());
        framed.extend_from_slice(&answer);
        frames.push(Frame::data(framed.freeze()));
    } else {
        let said = String::from_utf8_lossy(&answer).replace('\n', " ");
        trailers.insert("grpc-message", said.parse().unwrap());
    }
    frames.push(Frame::trailers(trailers));
    Ok(http::Response::new(Frames(frames.into_iter())))
}

impl Shared {
    fn answer(&self, asked: &Asked) -> std::io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        match asked.method.as_str() {
            "GetInfo" => {
                for (field, text) in [
                    (1, "CSIPlugin"),
                    (2, NAME),
                    (3, self.endpoint.to_str().unwrap()),
                    (4, "1.0.0"),
                ] {
                    put(&mut answer, field, text.as_bytes());
                }
            }
            "NotifyRegistrationStatus" => {}
            "NodeGetInfo" => {
                put(&mut answer, 1, b"node-of-test");
                answer.extend([2 << 3, 9]); // As many volumes.
                let (mut pair, mut topology) = (Vec::new(), Vec::new());
                put(&mut pair, 1, b"topology.test.example/rack");
                put(&mut pair, 2, b"r1");
                put(&mut topology, 1, &pair);
                put(&mut answer, 3, &topology);
            }
            "NodeGetCapabilities" => {
                // It stages, and tells of volumes.
                for kind in [1_u8, 2] {
                    put(&mut answer, 1, &[0x0a, 2, 1 << 3, kind]);
                }
            }
            "NodeGetVolumeStats" => {
                let bytes = [1 << 3, 70, 2 << 3, 100, 3 << 3, 30, 4 << 3, 1];
                put(&mut answer, 1, &bytes);
            }
            _ => self.change(asked)?,
        }
        Ok(answer)
    }

    fn change(&self, asked: &Asked) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.asked.push(asked.clone());
        while state.held == asked.method {
            state = self.changed.wait(state).unwrap();
        }
        drop(state);
        let kept = self.volumes.join(asked.text(1));
        match asked.method.as_str() {
            "NodeStageVolume" => bind(&kept, &asked.text(3)),
            "NodePublishVolume" => match asked.texts.contains_key(&3) {
                true => bind(&asked.text(3), &asked.text(4)),
                false => bind(&kept, &asked.text(4)),
            },
            "NodeUnpublishVolume" => {
                unbind(&asked.text(2))?;
                match fs::remove_dir(asked.text(2)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                }
            }
            "NodeUnstageVolume" => unbind(&asked.text(2)),
            _ => Err(std::io::Error::other("not known")),
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = path.display().to_string();
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(&path))
}

fn bind(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(from)?;
    fs::create_dir_all(to)?;
    if !is_mounted(to) {
        mount(Some(from), to, NONE, MsFlags::MS_BIND, NONE)?;
    }
    Ok(())
}

fn unbind(path: &Path) -> std::io::Result<()> {
    if is_mounted(path) {
        umount2(path, MntFlags::empty())?;
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    // Nothing here is longer.
    out.extend(varint(bytes.len()));
    out.extend_from_slice(bytes);
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// Fields with their bytes; numbers are passed over.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let value = number(&mut bytes);
        if key & 7 == 2 {
            let (text, rest) = bytes.split_at(usize::try_from(value).unwrap());
            bytes = rest;
            found.push((key >> 3, text.to_vec()));
        }
    }
    found
}

/// Which fields of the questions are maps, and which are no text.
fn read(method: String, body: &[u8]) -> Asked {
    let (maps, others): (&[u64], &[u64]) = match method.as_str() {
        "NodeStageVolume" => (&[2, 5, 6], &[4]),
        "NodePublishVolume" => (&[2, 7, 8], &[5]),
        _ => (&[], &[]),
    };
    let mut asked = Asked {
        method,
        ..Asked::default()
    };
    for (field, bytes) in fields(body) {
        if maps.contains(&field) {
            let pair = fields(&bytes);
            let text = |of: u64| {
                let found = pair.iter().find(|(field, _)| *field == of);
                found.map_or_else(String::new, |(_, text)| {
                    String::from_utf8(text.clone()).unwrap()
                })
            };
            let map = asked.maps.entry(field).or_default();
            map.insert(text(1), text(2));
        } else if !others.contains(&field) {
            let text = String::from_utf8(bytes).unwrap();
            asked.texts.insert(field, text);
        }
    }
    asked
}
