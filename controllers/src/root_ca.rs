//! Publishes the CA certificate as the ConfigMap `kube-root-ca.crt` in every live namespace.
//!
//! Reads Namespaces and the ConfigMaps of that name; creates and mends those, nothing else.

use crate::{Context, refusal};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Filter, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "kube-root-ca.crt";
const FIELD: &str = "ca.crt";
const ABOUT: &str = "kubernetes.io/description";
const ABOUT_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                          using internal endpoints such as the internal service IP or \
                          kubernetes.default.svc. No other usage is guaranteed across \
                          distributions of Kubernetes clusters.";
const WORKERS: usize = 2;

#[derive(Debug, thiserror::Error)]
#[error("cannot publish the CA certificate in {namespace}")]
pub(crate) struct PublishError {
    namespace: String,
    source: kube::Error,
}

struct Controller {
    client: Client,
    namespaces: Informer<Namespace>,
    published: Informer<ConfigMap>,
    ca_cert_pem: String,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let named = Filter::fields(format!("metadata.name={NAME}"));
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            namespaces: context.informers.get(),
            published: context.informers.get_filtered(named),
            ca_cert_pem: context.config.ca_cert_pem.clone(),
        });
        let added = queue.clone();
        controller
            .namespaces
            .on_change(move |change| added.add(key_of(change.object().as_ref())));
        let added = queue.clone();
        controller.published.on_change(move |change| {
            let namespace = change
                .object()
                .metadata
                .namespace
                .clone()
                .unwrap_or_default();
            added.add(ObjectKey::new("", namespace));
        });
        if !(controller.namespaces.synced().await && controller.published.synced().await) {
            return;
        }
        let (objects, recorder) = (
            controller.namespaces.clone(),
            context.failures("root-ca-cert-publisher"),
        );
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run("root-ca", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    fn data(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(FIELD.to_owned(), self.ca_cert_pem.clone())])
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, PublishError> {
        let Some(namespace) = self.namespaces.get(key) else {
            return Ok(Requeue::Never);
        };
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(Requeue::Never);
        }
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &key.name);
        let written = match self.published.get(&ObjectKey::new(&*key.name, NAME)) {
            None => maps.create(&PostParams::default(), &self.map()).await,
            Some(found) if found.data.as_ref() == Some(&self.data()) => {
                return Ok(Requeue::Never);
            }
            Some(found) => {
                let mended = ConfigMap {
                    data: Some(self.data()),
                    ..ConfigMap::clone(&found)
                };
                maps.replace(NAME, &PostParams::default(), &mended).await
            }
        };
        match written {
            Ok(_) => Ok(Requeue::Never),
            Err(error)
                if refusal::is_already_exists(&error)
                    || refusal::is_not_found(&error)
                    || refusal::is_namespace_terminating(&error) =>
            {
                Ok(Requeue::Never)
            }
            Err(source) => Err(PublishError {
                namespace: key.name.clone(),
                source,
            }),
        }
    }

    fn map(&self) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                annotations: Some(BTreeMap::from([(ABOUT.to_owned(), ABOUT_TEXT.to_owned())])),
                ..ObjectMeta::default()
            },
            data: Some(self.data()),
            ..ConfigMap::default()
        }
    }
}

#[cfg(test)]
mod tests;
