//! Keys over the life of a store: made, rotated, lost, configured.

use super::*;
use coracle_store::{Change, Config, Durability, Expect, OpenError, Stamped, Write};
use std::os::unix::fs::PermissionsExt;

const SECRETS: &str = "/secrets";
const PLAIN: &str = "hunter2-correct-horse";
const KEY1: &str = "c2VjcmV0IGlzIHNlY3VyZSBhbmQgMzIgYnl0ZXMhISE=";

struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn key_file(&self) -> PathBuf {
        self.path("pki/secrets.key")
    }

    fn keys(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.key_file()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    fn settings(&self, configuration: Option<&str>) -> Settings {
        Settings {
            key_file: self.key_file(),
            configuration: configuration.map(|text| {
                let file = self.path("encryption.yaml");
                std::fs::write(&file, text).unwrap();
                file
            }),
        }
    }

    fn try_open(&self, at_rest: &AtRest) -> Result<Store, OpenError> {
        let store = Store::open(Config {
            seal: Some(at_rest.seal()),
            ..Config::new(self.path("store"))
        })?;
        at_rest.settle().unwrap();
        Ok(store)
    }

    fn open(&self, configuration: Option<&str>) -> (AtRest, Store) {
        let at_rest = AtRest::open(self.settings(configuration)).unwrap();
        let store = self.try_open(&at_rest).unwrap();
        (at_rest, store)
    }

    fn is_on_disk(&self, text: &str) -> bool {
        holds(&self.path("store"), text.as_bytes())
    }
}

fn holds(path: &Path, bytes: &[u8]) -> bool {
    if !path.is_dir() {
        let content = std::fs::read(path).unwrap();
        return content.windows(bytes.len()).any(|window| window == bytes);
    }
    let entries = std::fs::read_dir(path).unwrap();
    entries
        .into_iter()
        .any(|entry| holds(&entry.unwrap().path(), bytes))
}

async fn put(store: &Store, partition: &str, value: &str) {
    let write = Write {
        partition: partition.into(),
        key: "default/a".into(),
        change: Change::Put(Stamped {
            value: value.as_bytes().to_vec(),
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    };
    store.commit(write).await.unwrap();
}

fn value(store: &Store) -> String {
    let snapshot = store.snapshot(SECRETS);
    let entry = snapshot.get("default/a").unwrap();
    String::from_utf8_lossy(&entry.value).into_owned()
}

fn configuration(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers: {providers}\n"
    )
}

#[tokio::test]
async fn secrets_are_sealed_with_a_key_that_only_its_owner_reads() {
    let site = Site::new();
    let (at_rest, store) = site.open(None);
    put(&store, SECRETS, PLAIN).await;
    put(&store, "/configmaps", "in-the-open").await;
    store.close().await;
    assert!(!site.is_on_disk(PLAIN) && site.is_on_disk("in-the-open"));
    let mode = std::fs::metadata(site.key_file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!format!("{at_rest:?}").contains(&site.keys()[0]));
    let (at_rest, store) = site.open(None);
    assert_eq!(value(&store), PLAIN);
    assert_eq!(at_rest.catch_up(&store).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn a_rotation_leaves_one_new_key_and_nothing_of_the_old() {
    let site = Site::new();
    let (at_rest, store) = site.open(None);
    put(&store, SECRETS, PLAIN).await;
    store.write_snapshot().await.unwrap();
    let old = site.keys();
    let id = old[0].split(' ').next().unwrap().to_owned();
    assert!(site.is_on_disk(&id), "records name their key");
    let done = at_rest.rotate(&store).await.unwrap();
    assert_eq!((done.records, done.snapshots), (1, 1));
    let new = site.keys();
    assert!(new.len() == 1 && new != old);
    assert!(!site.is_on_disk(&id));
    put(&store, SECRETS, "new").await;
    store.close().await;
    let (_, store) = site.open(None);
    assert_eq!(value(&store), "new");
    store.close().await;
}

#[tokio::test]
async fn a_rotation_that_did_not_end_is_finished_at_the_next_start() {
    let site = Site::new();
    let (_, store) = site.open(None);
    put(&store, SECRETS, PLAIN).await;
    store.close().await;
    let old = site.keys();
    // As if it had been killed after the new key was written.
    let other = Site::new();
    other.open(None).1.close().await;
    let both = format!("coracle-secrets-key 1\n{}\n{}\n", other.keys()[0], old[0]);
    std::fs::write(site.key_file(), both).unwrap();
    let (at_rest, store) = site.open(None);
    assert_eq!((value(&store), store.stale()), (PLAIN.to_owned(), 1));
    assert_eq!(at_rest.catch_up(&store).await.unwrap().unwrap().records, 1);
    assert_eq!(site.keys(), other.keys());
    assert!(!site.is_on_disk(old[0].split(' ').next().unwrap()));
    store.close().await;
}

#[tokio::test]
async fn a_lost_or_broken_key_file_is_named_and_nothing_is_lost() {
    let site = Site::new();
    let (_, store) = site.open(None);
    put(&store, SECRETS, PLAIN).await;
    store.close().await;
    let (key_file, aside) = (site.key_file(), site.path("aside"));
    std::fs::rename(&key_file, &aside).unwrap();
    let refused = site.try_open(&AtRest::open(site.settings(None)).unwrap());
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("/secrets default/a: it is encrypted with the key"),
        "{text}"
    );
    assert!(text.contains(&key_file.display().to_string()), "{text}");
    assert!(!key_file.exists(), "no new key pretends to be the old one");
    for broken in [
        "",
        "coracle-secrets-key 1\n",
        "coracle-secrets-key 1\nabc def\n",
    ] {
        std::fs::write(&key_file, broken).unwrap();
        let refused = AtRest::open(site.settings(None)).unwrap_err().to_string();
        assert!(
            refused.contains(&key_file.display().to_string()),
            "{refused}"
        );
    }
    std::fs::rename(&aside, &key_file).unwrap();
    let (_, store) = site.open(None);
    assert_eq!(value(&store), PLAIN);
    store.close().await;
}

#[tokio::test]
async fn a_configuration_decides_instead_and_each_change_of_it_is_caught_up_with() {
    let site = Site::new();
    let (_, store) = site.open(None);
    put(&store, SECRETS, PLAIN).await;
    store.close().await;
    let keys = format!("{{keys: [{{name: one, secret: {KEY1}}}]}}");
    let steps = [
        (
            format!("[{{aesgcm: {keys}}}, {{identity: {{}}}}]"),
            "aesgcm:one",
        ),
        (
            format!("[{{secretbox: {keys}}}, {{aesgcm: {keys}}}]"),
            "secretbox:one",
        ),
        (
            format!("[{{identity: {{}}}}, {{secretbox: {keys}}}]"),
            PLAIN,
        ),
        (format!("[{{aescbc: {keys}}}]"), "aescbc:one"),
    ];
    for (providers, on_disk) in steps {
        let (at_rest, store) = site.open(Some(&configuration(&providers)));
        assert_eq!(value(&store), PLAIN);
        assert!(at_rest.catch_up(&store).await.unwrap().is_some());
        let refused = at_rest.rotate(&store).await;
        assert!(matches!(refused, Err(RotateError::Configured(_))));
        store.close().await;
        assert!(site.is_on_disk(on_disk), "{on_disk}");
        assert_eq!(site.is_on_disk(PLAIN), on_disk == PLAIN);
    }
    // Without the configuration its values say what is needed.
    let refused = site.try_open(&AtRest::open(site.settings(None)).unwrap());
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("start with the --encryption-provider-config"),
        "{text}"
    );
}
