//! A namespace of our own to work in, and taking away all that a run made.

use anyhow::Context;
use coracle_client::Client;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use std::collections::BTreeMap;
use std::time::Duration;

/// The label on everything made; its value is the run's namespace.
pub const LABEL: &str = "coracle-bench/run";
/// Controllers make the default service account; a slow machine takes seconds.
const ACCOUNT_WAIT_MAX: Duration = Duration::from_secs(60);
const ACCOUNT_POLL: Duration = Duration::from_millis(100);

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

    pub async fn remove_config_maps(&self) -> anyhow::Result<()> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.name);
        let ours = ListParams::default().labels(&format!("{LABEL}={}", self.name));
        let gone = api.delete_collection(&DeleteParams::default(), &ours).await;
        gone.map(drop).context("cannot delete the ConfigMaps")
    }

    /// `nodes` are the names of those whose leases are to go too.
    pub async fn remove(&self, nodes: &[String]) -> anyhow::Result<()> {
        let ours = ListParams::default().labels(&format!("{LABEL}={}", self.name));
        let now = DeleteParams::default().grace_period(0);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.name);
        let all: Api<Node> = Api::all(self.client.clone());
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &self.name);
        // Each is tried, whatever became of those before it. What makes pods goes before them.
        let mut results = vec![
            deployments.delete_collection(&now, &ours).await.map(drop),
            pods.delete_collection(&now, &ours).await.map(drop),
            maps.delete_collection(&now, &ours).await.map(drop),
        ];
        if !nodes.is_empty() {
            let classes: Api<PriorityClass> = Api::all(self.client.clone());
            results.push(classes.delete_collection(&now, &ours).await.map(drop));
            results.push(all.delete_collection(&now, &ours).await.map(drop));
        }
        for node in nodes {
            let gone = leases.delete(node, &now).await.map(drop);
            results.push(gone.or_else(missing_is_fine));
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

fn missing_is_fine(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        other => Err(other),
    }
}
