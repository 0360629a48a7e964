//! A namespace of our own to work in, and taking away all that a run made.

use anyhow::Context;
use coracle_client::Client;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// The label on everything made; its value is the run's namespace.
pub const LABEL: &str = "coracle-bench/run";
/// Controllers make the default service account; a slow machine takes seconds.
const ACCOUNT_WAIT_MAX: Duration = Duration::from_secs(60);
const ACCOUNT_POLL: Duration = Duration::from_millis(100);
/// What is taken away is listed in pages, and gone so many at a time.
const PAGE: u32 = 500;
const REMOVED_AT_ONCE: usize = 32;

pub struct Scratch {
    pub client: Client,
    pub name: String,
}

impl Scratch {
    pub async fn create(client: Client) -> anyhow::Result<Self> {
        let api: Api<Namespace> = Api::all(client.clone());
        let namespace = Namespace {
            metadata: ObjectMeta {
                generate_name: Some("coracle-bench-".to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let made = api
            .create(&PostParams::default(), &namespace)
            .await
            .context("cannot create a namespace to work in")?;
        let name = made
            .metadata
            .name
            .context("the server gave the namespace no name")?;
        Ok(Self { client, name })
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(LABEL.to_owned(), self.name.clone())])
    }

    /// Pods are refused before their service account exists.
    pub async fn wait_for_account(&self) -> anyhow::Result<()> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.name);
        let poll = async {
            while api.get_opt("default").await?.is_none() {
                tokio::time::sleep(ACCOUNT_POLL).await;
            }
            Ok::<_, kube::Error>(())
        };
        tokio::time::timeout(ACCOUNT_WAIT_MAX, poll)
            .await
            .context("no default service account appeared: do the controllers run?")??;
        Ok(())
    }

    /// Makes the account where no controller does.
    pub async fn ensure_account(&self) -> anyhow::Result<()> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.name);
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some("default".to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match api.create(&PostParams::default(), &account).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            made => made.map(drop).context("cannot make a service account"),
        }
    }

    /// One by one: a server gives up the deletion of a whole collection after a minute. A list that
    /// the server forgot meanwhile, as so much was deleted, begins anew.
    async fn remove_all<K>(&self, api: Api<K>) -> Result<(), kube::Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let first = ListParams::default().labels(&format!("{LABEL}={}", self.name));
        let first = first.limit(PAGE);
        let mut page = first.clone();
        loop {
            let some = match api.list_metadata(&page).await {
                Err(kube::Error::Api(status)) if status.code == 410 => {
                    page = first.clone();
                    continue;
                }
                listed => listed?,
            };
            let names = some.items.into_iter().filter_map(|one| one.metadata.name);
            remove_named(&api, &names.collect::<Vec<_>>()).await?;
            match some.metadata.continue_ {
                Some(token) if !token.is_empty() => page = first.clone().continue_token(&token),
                _ => return Ok(()),
            }
        }
    }

    /// `nodes` are the names of those whose leases are to go too.
    pub async fn remove(&self, nodes: &[String]) -> anyhow::Result<()> {
        let (of, name) = (&self.client, self.name.as_str());
        // Each is tried, whatever became of those before it. What makes pods goes before them.
        let mut results = vec![
            self.remove_all(Api::<Deployment>::namespaced(of.clone(), name))
                .await,
            self.remove_all(Api::<Pod>::namespaced(of.clone(), name))
                .await,
            self.remove_all(Api::<ConfigMap>::namespaced(of.clone(), name))
                .await,
        ];
        if !nodes.is_empty() {
            let classes = Api::<PriorityClass>::all(of.clone());
            results.push(self.remove_all(classes).await);
            results.push(self.remove_all(Api::<Node>::all(of.clone())).await);
            let leases = Api::<Lease>::namespaced(of.clone(), "kube-node-lease");
            results.push(remove_named(&leases, nodes).await);
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let gone = namespaces
            .delete(&self.name, &DeleteParams::default())
            .await;
        results.push(gone.map(drop).or_else(missing_is_fine));
        results
            .into_iter()
            .collect::<Result<(), _>>()
            .with_context(|| format!("cannot remove all of {}", self.name))
    }
}

/// Many at once, and all of them whatever becomes of one.
async fn remove_named<K>(api: &Api<K>, names: &[String]) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let now = &DeleteParams::default().grace_period(0);
    let removals = futures::stream::iter(names).map(|name| async move {
        let gone = api.delete(name, now).await.map(drop);
        gone.or_else(missing_is_fine)
    });
    let removed = removals.buffer_unordered(REMOVED_AT_ONCE);
    removed.fold(Ok(()), async |all, one| all.and(one)).await
}

fn missing_is_fine(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        other => Err(other),
    }
}
