//! A registry that serves images as a test describes them, and lies as it is told to.
//!
//! Each path is answered with prepared bytes. It listens on the loopback of a host of the lab.

use crate::lab::Host;
use crate::pictures;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{Shutdown, shutdown};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const REQUEST_BYTES_MAX: usize = 16 << 10;

#[derive(Clone)]
pub enum Reply {
    /// Status line and headers without a length, then a body whose length is told right.
    Plain(String, Vec<u8>),
    /// A body of another length than is told; then the connection is closed.
    Claim(usize, Vec<u8>),
    /// The beginning of a body, then nothing more for as long as the client waits.
    Stuck(Vec<u8>),
}

pub fn ok(body: impl Into<Vec<u8>>) -> Reply {
    Reply::Plain("200 OK\r\n".to_owned(), body.into())
}

pub fn redirect(to: &str) -> Reply {
    let head = format!("307 Temporary Redirect\r\nLocation: {to}\r\n");
    Reply::Plain(head, Vec::new())
}

type Replies = Arc<Mutex<HashMap<String, Reply>>>;

pub struct Registry {
    pub address: String,
    replies: Replies,
    listener: Arc<TcpListener>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Whoever waits for a connection there is woken, and ends.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
    }
}

/// Where the parts of an image are served, so that they can be replaced.
pub struct Paths {
    pub manifest: String,
    pub config: String,
    /// Lowest first.
    pub layers: Vec<String>,
}

impl Registry {
    pub fn start(host: &Host) -> Self {
        let namespace = format!("/run/netns/{}", host.namespace);
        // The listener stays in the network of the thread that made it.
        let bound = std::thread::spawn(move || {
            let namespace = std::fs::File::open(namespace).unwrap();
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            TcpListener::bind("127.0.0.1:0").unwrap()
        });
        let listener = Arc::new(bound.join().unwrap());
        let replies = Replies::default();
        let (accepting, known) = (listener.clone(), replies.clone());
        std::thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let known = known.clone();
                std::thread::spawn(move || answer(stream, &known));
            }
        });
        let registry = Self {
            address: listener.local_addr().unwrap().to_string(),
            replies,
            listener,
        };
        registry.on("/v2/", ok(""));
        registry
    }

    pub fn on(&self, path: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// What is answered now is answered to those who show this from now on, others get `reply`.
    pub fn guard(&self, path: &str, authorization: &str, reply: Reply) {
        let mut replies = self.replies.lock().unwrap();
        let open = replies.insert(path.to_owned(), reply).unwrap();
        replies.insert(format!("{path} {authorization}"), open);
    }

    /// The name that pods use.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}:1", self.address)
    }

    /// An image of layers as they are, which may be compressed.
    pub fn serve(&self, name: &str, layers: &[Vec<u8>]) -> Paths {
        let plain: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
        let parts = layers.iter().zip(plain);
        self.serve_unpacked(
            name,
            &parts.map(|(a, b)| (a.clone(), b)).collect::<Vec<_>>(),
        )
    }

    /// The same of layers as they are sent, each with what it unpacks to.
    pub fn serve_unpacked(&self, name: &str, layers: &[(Vec<u8>, &[u8])]) -> Paths {
        let digest = |bytes: &[u8]| format!("sha256:{}", pictures::sha256(bytes));
        let diff_ids: Vec<_> = layers.iter().map(|(_, plain)| digest(plain)).collect();
        let config = serde_json::json!({
            "architecture": pictures::architecture(), "os": "linux",
            "config": { "Env": ["PATH=/bin"], "Cmd": ["true"] },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        let blob = |bytes: &[u8], kind: &str| {
            let path = format!("/v2/{name}/blobs/{}", digest(bytes));
            self.on(&path, ok(bytes));
            let described = serde_json::json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"),
                "digest": digest(bytes), "size": bytes.len(),
            });
            (path, described)
        };
        let (config_path, config) = blob(config.to_string().as_bytes(), "config.v1+json");
        let sent = layers.iter().map(|(sent, _)| blob(sent, "layer.v1.tar"));
        let (layer_paths, described): (Vec<_>, Vec<_>) = sent.unzip();
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": described,
        });
        let paths = Paths {
            manifest: format!("/v2/{name}/manifests/1"),
            config: config_path,
            layers: layer_paths,
        };
        self.on(&paths.manifest, manifest_reply(&manifest.to_string()));
        paths
    }

    /// The manifest as it is served now.
    pub fn manifest(&self, paths: &Paths) -> serde_json::Value {
        match &self.replies.lock().unwrap()[&paths.manifest] {
            Reply::Plain(_, body) => serde_json::from_slice(body).unwrap(),
            _ => panic!("no manifest is served"),
        }
    }
}

pub fn manifest_reply(manifest: &str) -> Reply {
    let kind = match manifest.contains("\"manifests\"") {
        true => INDEX_TYPE,
        false => MANIFEST_TYPE,
    };
    let head = format!("200 OK\r\nContent-Type: {kind}\r\n");
    Reply::Plain(head, manifest.into())
}

fn answer(mut stream: TcpStream, replies: &Replies) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).ok()?;
    let mut words = request.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let authorization = request.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then_some(value)
    });
    let path = target.split('?').next()?;
    let with = authorization.map(|value| format!("{path} {value}"));
    let reply = {
        let replies = replies.lock().unwrap();
        let own = with.and_then(|with| replies.get(&with).cloned());
        own.or_else(|| replies.get(path).cloned())
    };
    let missing = || Reply::Plain("404 Not Found\r\n".into(), Vec::new());
    let head = |first: &str, length: usize| {
        format!("HTTP/1.1 {first}Content-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    let (head, body, is_stuck) = match reply.unwrap_or_else(missing) {
        Reply::Plain(first, body) => (head(&first, body.len()), body, false),
        Reply::Claim(length, body) => (head("200 OK\r\n", length), body, false),
        Reply::Stuck(body) => (head("200 OK\r\n", body.len() + 1), body, true),
    };
    stream.write_all(head.as_bytes()).ok()?;
    if method != "HEAD" {
        stream.write_all(&body).ok()?;
    }
    if is_stuck {
        // Until the client has had enough.
        std::io::copy(&mut stream, &mut std::io::sink()).ok()?;
    }
    stream.shutdown(std::net::Shutdown::Write).ok()
}
