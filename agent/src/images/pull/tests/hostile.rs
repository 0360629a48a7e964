//! Registries that hang, lie, send elsewhere or want tokens, and a disk that is full.
//!
//! The server answers each path with prepared bytes, as they are, and notes what it was asked.

use super::*;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const REQUEST_BYTES_MAX: usize = 16 << 10;

#[derive(Clone)]
enum Reply {
    /// Status line and headers without a length, then a body whose length is told right.
    Plain(String, Vec<u8>),
    /// As it is; then the connection is closed.
    Raw(Vec<u8>),
    /// As it is; then nothing more, for ever.
    Stuck(Vec<u8>),
}

fn ok(body: impl Into<Vec<u8>>) -> Reply {
    Reply::Plain("200 OK\r\n".into(), body.into())
}

type Asked = Arc<Mutex<Vec<String>>>;

struct Hostile {
    address: String,
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    /// Request lines, and the authorization that came with them.
    asked: Asked,
    directory: tempfile::TempDir,
    store: ImageStore,
}

impl Hostile {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let replies: Arc<Mutex<HashMap<String, Reply>>> = Arc::default();
        let asked = Asked::default();
        let (known, noted) = (replies.clone(), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, known.clone(), noted.clone()));
            }
        });
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(&directory.path().join("images")).unwrap();
        Self {
            address,
            replies,
            asked,
            directory,
            store,
        }
    }

    fn on(&self, path: &str, reply: Reply) {
        self.replies.lock().insert(path.to_owned(), reply);
    }

    /// An image whose layers are as given, uncompressed; answers with the blobs' paths.
    fn serve(&self, layers: &[Vec<u8>]) -> Vec<String> {
        let sample = Sample::new("app:1", &[]);
        let mut config: serde_json::Value = serde_json::from_slice(&sample.config).unwrap();
        let diff_ids: Vec<String> = layers.iter().map(|layer| digest::of(layer)).collect();
        config["rootfs"]["diff_ids"] = serde_json::json!(diff_ids);
        let config = config.to_string().into_bytes();
        let mut paths = Vec::new();
        let mut blob = |bytes: &[u8], kind: &str| {
            let digest = digest::of(bytes);
            let path = format!("/v2/app/blobs/{digest}");
            self.on(&path, ok(bytes));
            paths.push(path);
            serde_json::json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"),
                "digest": digest, "size": bytes.len(),
            })
        };
        let config = blob(&config, "config.v1+json");
        let layers: Vec<_> = layers.iter().map(|one| blob(one, "layer.v1.tar")).collect();
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPES[1], "config": config, "layers": layers,
        });
        self.on("/v2/", ok(""));
        self.on(
            "/v2/app/manifests/1",
            Reply::Plain(
                format!("200 OK\r\nContent-Type: {}\r\n", MANIFEST_TYPES[1]),
                manifest.to_string().into_bytes(),
            ),
        );
        paths
    }

    async fn pull(&self) -> Result<ImageInfo, String> {
        let pulled = self
            .store
            .pull(&format!("{}/app:1", self.address), &[])
            .await;
        pulled.map_err(|error| crate::error::chain(&error))
    }

    async fn refused(&self) -> String {
        let text = self.pull().await.unwrap_err();
        for part in ["work", "layers"] {
            let left = fs::read_dir(self.directory.path().join("images").join(part)).unwrap();
            assert_eq!(left.count(), 0, "{part} after {text}");
        }
        assert!(self.store.list().unwrap().is_empty());
        text
    }
}

async fn answer(
    mut stream: TcpStream,
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    asked: Asked,
) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        request.push(stream.read_u8().await.ok()?);
    }
    let request = String::from_utf8(request).ok()?;
    let mut words = request.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let authorization = request.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then_some(value)
    });
    let note = format!("{method} {target} {}", authorization.unwrap_or("-"));
    asked.lock().push(note);
    let path = target.split('?').next()?;
    let with = authorization.map(|value| format!("{path} {value}"));
    let reply = {
        let replies = replies.lock();
        let own = with.and_then(|with| replies.get(&with).cloned());
        own.or_else(|| replies.get(path).cloned())
    };
    let missing = || Reply::Plain("404 Not Found\r\n".into(), Vec::new());
    let (bytes, is_stuck) = match reply.unwrap_or_else(missing) {
        Reply::Plain(head, body) => {
            let length = body.len();
            let head =
                format!("HTTP/1.1 {head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
            (
                if method == "HEAD" {
                    head.into_bytes()
                } else {
                    [head.into_bytes(), body].concat()
                },
                false,
            )
        }
        Reply::Raw(bytes) => (bytes, false),
        Reply::Stuck(bytes) => (bytes, true),
    };
    stream.write_all(&bytes).await.ok()?;
    if is_stuck {
        std::future::pending::<()>().await;
    }
    stream.shutdown().await.ok()
}

/// As many bytes as said, and fewer or more.
fn claiming(length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn layer(name: &str) -> Vec<u8> {
    crate::images::archive::tests::file_layer(name)
}

#[tokio::test]
async fn a_registry_that_keeps_its_word_is_believed() {
    let registry = Hostile::start().await;
    registry.serve(&[layer("a")]);
    registry.pull().await.unwrap();
}

#[tokio::test]
async fn lengths_that_are_lies_are_found_out() {
    let registry = Hostile::start().await;
    let body = layer("a");
    let paths = registry.serve(std::slice::from_ref(&body));
    // Less than was said: tried again, as a broken connection would be, and given up.
    registry.on(&paths[1], Reply::Raw(claiming(body.len() * 2, &body)));
    registry.refused().await;
    let tries = registry
        .asked
        .lock()
        .iter()
        .filter(|line| line.contains(&paths[1]))
        .count();
    assert_eq!(tries, LAYER_TRIES_MAX as usize);
    registry.on(
        &paths[1],
        Reply::Raw(claiming(body.len(), &body[..body.len() / 2])),
    );
    registry.refused().await;
    // More than the manifest said.
    let longer = [body.clone(), vec![0; 4096]].concat();
    registry.on(&paths[1], ok(longer));
    let text = registry.refused().await;
    assert!(text.contains("cannot read the layer: more than "), "{text}");
    registry.on(&paths[1], ok(body));
    registry.pull().await.unwrap();
}

#[tokio::test]
async fn sizes_beyond_all_numbers_are_only_told() {
    let registry = Hostile::start().await;
    registry.serve(&[layer("a"), layer("b")]);
    let reply = registry.replies.lock()["/v2/app/manifests/1"].clone();
    let Reply::Plain(head, body) = reply else {
        panic!("a manifest is served");
    };
    let mut manifest: serde_json::Value = serde_json::from_slice(&body).unwrap();
    for number in 0..2 {
        manifest["layers"][number]["size"] = u64::MAX.into();
    }
    let body = manifest.to_string().into_bytes();
    registry.on("/v2/app/manifests/1", Reply::Plain(head, body));
    assert_eq!(registry.pull().await.unwrap().size_bytes, u64::MAX);
}

#[tokio::test]
async fn contents_with_another_digest_are_refused() {
    let registry = Hostile::start().await;
    let paths = registry.serve(&[layer("a")]);
    registry.on(&paths[1], ok(layer("b")));
    let text = registry.refused().await;
    assert!(text.contains("Invalid digest"), "{text}");
    let paths = registry.serve(&[layer("a")]);
    registry.on(&paths[0], ok("{}"));
    let text = registry.refused().await;
    assert!(text.contains("Invalid digest"), "{text}");
}

/// The clock jumps when nothing else is to be done: no test waits for a minute.
#[tokio::test(start_paused = true)]
async fn a_registry_that_hangs_is_given_up() {
    let registry = Hostile::start().await;
    registry.serve(&[layer("a")]);
    registry.on("/v2/app/manifests/1", Reply::Stuck(Vec::new()));
    let text = registry.refused().await;
    assert!(text.contains("timed out"), "{text}");
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let registry = Hostile::start().await;
    let body = layer("a");
    let paths = registry.serve(std::slice::from_ref(&body));
    let elsewhere = Hostile::start().await;
    elsewhere.on("/blob", ok(body));
    let to = |url: String| {
        Reply::Plain(
            format!("307 Temporary Redirect\r\nLocation: {url}\r\n"),
            Vec::new(),
        )
    };
    registry.on(
        &paths[1],
        to(format!("http://{}{}", registry.address, paths[1])),
    );
    let text = registry.refused().await;
    assert!(text.contains("redirect"), "{text}");
    registry.on(&paths[1], to("file:///etc/passwd".into()));
    registry.refused().await;
    registry.on(&paths[1], to(format!("http://{}/blob", elsewhere.address)));
    registry.pull().await.unwrap();
}

#[tokio::test]
async fn a_token_is_fetched_where_the_registry_says_and_stays_with_it() {
    let registry = Hostile::start().await;
    let body = layer("a");
    let paths = registry.serve(std::slice::from_ref(&body));
    let realm = format!("http://{}/token", registry.address);
    let challenge = Reply::Plain(
        format!(
            "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"{realm}\",service=\"lab\"\r\n"
        ),
        Vec::new(),
    );
    let elsewhere = Hostile::start().await;
    elsewhere.on("/blob", ok(body));
    let away = format!(
        "307 Temporary Redirect\r\nLocation: http://{}/blob\r\n",
        elsewhere.address
    );
    registry.on(&paths[1], Reply::Plain(away, Vec::new()));
    for path in ["/v2/", "/v2/app/manifests/1", &paths[0], &paths[1]] {
        let open = registry.replies.lock().get(path).cloned().unwrap();
        registry.on(&format!("{path} Bearer secret"), open);
        registry.on(path, challenge.clone());
    }
    registry.on("/token", ok("nonsense"));
    let text = registry.refused().await;
    assert!(text.contains("Not authorized: url "), "{text}");
    registry.on("/token", ok(r#"{"token":"secret"}"#));
    registry.pull().await.unwrap();
    let asked = registry.asked.lock().join("\n");
    assert!(
        asked.contains("GET /token?") && asked.contains("repository%3Aapp%3Apull"),
        "{asked}"
    );
    assert_eq!(*elsewhere.asked.lock(), ["GET /blob -"]);
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_came_is_taken_away() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: a small disk is mounted by root");
        return;
    }
    let mut registry = Hostile::start().await;
    let small = registry.directory.path().join("small");
    fs::create_dir(&small).unwrap();
    let flags = nix::mount::MsFlags::empty();
    nix::mount::mount(Some("tmpfs"), &small, Some("tmpfs"), flags, Some("size=1m")).unwrap();
    registry.store = ImageStore::open(&small.join("images")).unwrap();
    let mut big = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4 << 20);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    let noise = vec![7; 4 << 20];
    big.append_data(&mut header, "big", noise.as_slice())
        .unwrap();
    let big = big.into_inner().unwrap();
    // The first layer fits, the second does not.
    registry.serve(&[layer("a"), big]);
    let text = registry.pull().await.unwrap_err();
    assert!(text.contains("No space left on device"), "{text}");
    for part in ["work", "layers"] {
        let left = fs::read_dir(small.join("images").join(part))
            .unwrap()
            .count();
        assert_eq!(left, 0, "{part}");
    }
    registry.serve(&[layer("a")]);
    registry.pull().await.unwrap();
    let list = registry.store.list().unwrap();
    assert_eq!(list.len(), 1);
    drop(registry.store);
    nix::mount::umount(&small).unwrap();
}
