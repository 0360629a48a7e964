//! Creating, replacing and patching ConfigMaps.

use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use coracle_client::Client;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
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
        let namespace: Arc<str> = scratch.name.as_str().into();
        let what = |verb: &str| format!("{verb}, {}", self.name());
        let bytes = self.bytes;
        let created = object(scratch, 'a', bytes);
        let create = pool::run(what("create"), clients, self.count, {
            let namespace = Arc::clone(&namespace);
            move |client, number| {
                let object = named(&created, round, number);
                let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
                async move { api.create(&PostParams::default(), &object).await.map(drop) }
            }
        });
        let create = create.await?;
        let replaced = object(scratch, 'b', bytes);
        let update = pool::run(what("update"), clients, self.count, {
            let namespace = Arc::clone(&namespace);
            move |client, number| {
                let object = named(&replaced, round, number);
                let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
                async move {
                    let name = name_of(round, number);
                    let done = api.replace(&name, &PostParams::default(), &object).await;
                    done.map(drop)
                }
            }
        });
        let update = update.await?;
        let patched = Arc::new(Patch::Merge(json!({"data": {"value": "c".repeat(bytes)}})));
        let patch = pool::run(what("patch"), clients, self.count, move |client, number| {
            let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
            let patched = Arc::clone(&patched);
            async move {
                let name = name_of(round, number);
                let done = api.patch(&name, &PatchParams::default(), &*patched).await;
                done.map(drop)
            }
        });
        Ok(vec![create, update, patch.await?])
    }
}

fn name_of(round: usize, number: usize) -> String {
    format!("w-{round}-{number}")
}

fn object(scratch: &Scratch, letter: char, bytes: usize) -> Arc<ConfigMap> {
    let value = letter.to_string().repeat(bytes);
    Arc::new(ConfigMap {
        metadata: ObjectMeta {
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value)])),
        ..ConfigMap::default()
    })
}

fn named(template: &ConfigMap, round: usize, number: usize) -> ConfigMap {
    let mut object = template.clone();
    object.metadata.name = Some(name_of(round, number));
    object
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
