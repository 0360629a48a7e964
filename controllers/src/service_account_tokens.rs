//! Fills Secrets of type `kubernetes.io/service-account-token` with a token of the account that
//! they name, and deletes them with it.
//!
//! Reads ServiceAccounts and those Secrets; writes and deletes the Secrets, and takes a deleted
//! one out of its account's `secrets`. Who signs is handed in: the key is not known here.

use crate::{Context, SignToken, TokenFor, refusal};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::reference;
use coracle_client::informer::{Change, Filter, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use std::sync::Arc;

mod plan; // Pure. Start reading here.

use plan::Plan;

const WORKERS: usize = 2;

/// A Secret to look at: one that may be there, or one that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Secret(ObjectKey),
    /// A Secret that is gone may still be named by this account.
    Gone {
        secret: ObjectKey,
        account: String,
    },
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret(secret) | Self::Gone { secret, .. } => write!(f, "{secret}"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("cannot look up the service account {account}")]
    Account {
        account: String,
        source: kube::Error,
    },
    #[error("failed to generate token: {0}")]
    Sign(String),
    #[error("cannot {doing} the secret {secret}")]
    Secret {
        doing: &'static str,
        secret: String,
        source: kube::Error,
    },
}

struct Controller {
    client: Client,
    secrets: Informer<Secret>,
    accounts: Informer<ServiceAccount>,
    ca_cert_pem: String,
    sign: SignToken,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(sign) = context.config.sign_token.clone() else {
            return context.shutdown.cancelled().await;
        };
        let queue = WorkQueue::<Key>::new();
        let of_type = Filter::fields(format!("type={}", plan::TYPE));
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            secrets: context.informers.get_filtered(of_type),
            accounts: context.informers.get(),
            ca_cert_pem: context.config.ca_cert_pem.clone(),
            sign,
        });
        let added = queue.clone();
        controller.secrets.on_change(move |change| {
            let secret = change.object();
            let key = key_of(secret.as_ref());
            added.add(match (&change, plan::account(secret)) {
                (Change::Deleted(_), Some((name, _))) => Key::Gone {
                    secret: key,
                    account: name.to_owned(),
                },
                _ => Key::Secret(key),
            });
        });
        let (added, secrets) = (queue.clone(), controller.secrets.clone());
        controller.accounts.on_change(move |change| {
            let account = key_of(change.object().as_ref());
            for secret in secrets.list() {
                let key = key_of(secret.as_ref());
                let named = plan::account(&secret).map(|(name, _)| name);
                if key.namespace == account.namespace && named == Some(&*account.name) {
                    added.add(Key::Secret(key));
                }
            }
        });
        if !(controller.secrets.synced().await && controller.accounts.synced().await) {
            return;
        }
        let name = "service-account-token";
        let (secrets, accounts) = (controller.secrets.clone(), controller.accounts.clone());
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling_of(context.failures(name), move |key| match key {
                Key::Secret(key) => secrets.get(key).map(|secret| reference(&*secret)),
                Key::Gone { secret, account } => {
                    let account = ObjectKey::new(&secret.namespace, account);
                    accounts.get(&account).map(|account| reference(&*account))
                }
            });
        control_loop::run(name, queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &Key) -> Result<Requeue, TokenError> {
        match key {
            Key::Gone { secret, account } => self.forget(secret, account).await?,
            Key::Secret(key) => {
                if let Some(secret) = self.secrets.get(key) {
                    self.look_after(key, &secret).await?;
                }
            }
        }
        Ok(Requeue::Never)
    }

    async fn look_after(&self, key: &ObjectKey, secret: &Secret) -> Result<(), TokenError> {
        let Some((name, uid)) = plan::account(secret) else {
            return Ok(());
        };
        let account = self.account(&key.namespace, name, uid).await?;
        let token = |account: &ServiceAccount| {
            (self.sign)(&TokenFor {
                namespace: &key.namespace,
                account: name,
                account_uid: account.metadata.uid.as_deref().unwrap_or_default(),
                secret: &key.name,
            })
        };
        match plan::plan(secret, account.as_ref(), &self.ca_cert_pem) {
            Plan::Leave => Ok(()),
            Plan::Delete => self.delete(key, secret).await,
            Plan::Fill {
                account,
                with_token,
            } => {
                let token = with_token.then(|| token(account)).transpose();
                let token = token.map_err(TokenError::Sign)?;
                let filled = plan::filled(secret, account, &self.ca_cert_pem, token);
                self.write(key, &filled).await
            }
        }
    }

    /// The account by name and uid. Where no uid is named yet the server is asked: the copy may
    /// still show a predecessor, whose token would be worth nothing and whose Secret would go.
    async fn account(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Option<ServiceAccount>, TokenError> {
        let is_it = |account: &ServiceAccount| {
            uid.is_empty() || account.metadata.uid.as_deref() == Some(uid)
        };
        if !uid.is_empty()
            && let Some(known) = self.accounts.get(&ObjectKey::new(namespace, name))
            && is_it(&known)
        {
            return Ok(Some(ServiceAccount::clone(&known)));
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let found = accounts.get_opt(name).await;
        let found = found.map_err(|source| TokenError::Account {
            account: format!("{namespace}/{name}"),
            source,
        })?;
        Ok(found.filter(is_it))
    }

    async fn write(&self, key: &ObjectKey, secret: &Secret) -> Result<(), TokenError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        match secrets
            .replace(&key.name, &PostParams::default(), secret)
            .await
        {
            Ok(_) => Ok(()),
            // Its change, or its end, is on the way here.
            Err(error) if refusal::is_conflict(&error) || refusal::is_not_found(&error) => Ok(()),
            Err(source) => Err(failed("fill", key, source)),
        }
    }

    async fn delete(&self, key: &ObjectKey, secret: &Secret) -> Result<(), TokenError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: secret.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match secrets.delete(&key.name, &params).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_conflict(&error) || refusal::is_not_found(&error) => Ok(()),
            Err(source) => Err(failed("delete", key, source)),
        }
    }

    /// Takes a Secret that is gone out of its account.
    async fn forget(&self, secret: &ObjectKey, account: &str) -> Result<(), TokenError> {
        if self.secrets.get(secret).is_some() {
            return Ok(()); // There is a new one of the name.
        }
        let known = self
            .accounts
            .get(&ObjectKey::new(&*secret.namespace, account));
        let Some(changed) = known.and_then(|known| plan::without(&known, &secret.name)) else {
            return Ok(());
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &secret.namespace);
        let written = accounts
            .replace(account, &PostParams::default(), &changed)
            .await;
        match written {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(source) => Err(TokenError::Account {
                account: format!("{}/{account}", secret.namespace),
                source,
            }),
        }
    }
}

fn failed(doing: &'static str, key: &ObjectKey, source: kube::Error) -> TokenError {
    TokenError::Secret {
        doing,
        secret: key.to_string(),
        source,
    }
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}
