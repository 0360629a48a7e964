//! Creating, replacing and patching ConfigMaps.

use crate::configmaps;
use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use crate::wire::{self, Template};
use coracle_client::Client;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const SIZES: [usize; 2] = [1_000, 10_000];
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// One connection alone waits for each flush: fewer calls say as much.
const SHARE_OF_ONE: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub struct Writes {
    pub bytes: usize,
    pub connections: usize,
    pub count: usize,
}

/// `count` calls each.
pub fn cases(count: usize) -> Vec<Writes> {
    let of_size = |bytes| {
        CONNECTIONS.map(|connections| Writes {
            bytes,
            connections,
            count: match connections {
                1 => count.div_ceil(SHARE_OF_ONE),
                _ => count,
            },
        })
    };
    SIZES.into_iter().flat_map(of_size).collect()
}

impl Writes {
    pub fn name(&self) -> String {
        format!("{} B, {} connections", self.bytes, self.connections)
    }

    /// Each round has objects of its own: all are created, then replaced, then patched.
    pub async fn measure(
        &self,
        scratch: &Scratch,
        clients: &[Client],
        round: usize,
    ) -> anyhow::Result<Vec<Report>> {
        let all: Arc<str> = configmaps::path_in(&scratch.name).into();
        let count = self.count;
        let what = |verb: &str| format!("{verb}, {}", self.name());
        let created = Arc::new(Template::new(object(scratch, 'a', self.bytes))?);
        let path = Arc::clone(&all);
        let create = pool::run(what("create"), clients, count, move |client, number| {
            let (path, body) = (Arc::clone(&path), created.named(&name_of(round, number)));
            async move { wire::send(&client, Method::POST, &path, wire::JSON, body).await }
        });
        let create = create.await?;
        let replaced = Arc::new(Template::new(object(scratch, 'b', self.bytes))?);
        let path = Arc::clone(&all);
        let update = pool::run(what("update"), clients, count, move |client, number| {
            let name = name_of(round, number);
            let (path, body) = (format!("{path}/{name}"), replaced.named(&name));
            async move { wire::send(&client, Method::PUT, &path, wire::JSON, body).await }
        });
        let update = update.await?;
        let patch = json!({"data": {"value": "c".repeat(self.bytes)}});
        let patch: Arc<[u8]> = patch.to_string().into_bytes().into();
        let patch = pool::run(what("patch"), clients, count, move |client, number| {
            let (path, body) = (format!("{all}/{}", name_of(round, number)), patch.to_vec());
            async move { wire::send(&client, Method::PATCH, &path, wire::MERGE_PATCH, body).await }
        });
        Ok(vec![create, update, patch.await?])
    }
}

fn name_of(round: usize, number: usize) -> String {
    format!("w-{round}-{number}")
}

fn object(scratch: &Scratch, letter: char, bytes: usize) -> ConfigMap {
    let value = letter.to_string().repeat(bytes);
    ConfigMap {
        metadata: ObjectMeta {
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value)])),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::cases;

    #[test]
    fn every_size_meets_every_number_of_connections() {
        let cases = cases(10);
        let shapes: Vec<_> = cases
            .iter()
            .map(|case| (case.bytes, case.connections, case.count))
            .collect();
        let expected = [
            (1_000, 1, 3),
            (1_000, 16, 10),
            (1_000, 64, 10),
            (10_000, 1, 3),
            (10_000, 16, 10),
            (10_000, 64, 10),
        ];
        assert_eq!(shapes, expected);
    }
}
