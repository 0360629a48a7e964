//! `coracle token`: bootstrap tokens, through the API as any client would.

use crate::cli::{TokenAction, TokenCommand};
use crate::control_plane::told;
use crate::settings::parse;
use crate::{Failure, logging, settings, show};
use anyhow::{Context, bail};
use coracle_apiserver::bootstrap_tokens::{self, TokenInfo};
use coracle_client::{Client, connect};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use std::path::PathBuf;

pub fn run(command: TokenCommand) -> Result<(), Failure> {
    let ttl = match &command.action {
        TokenAction::Create { ttl, .. } => parse::duration("ttl", ttl)?,
        _ => std::time::Duration::ZERO,
    };
    let kubeconfig = command.kubeconfig.map_or_else(
        || settings::data_dir(command.data_dir.as_deref()).join("admin.kubeconfig"),
        PathBuf::from,
    );
    logging::start(None, "warn")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start")?.block_on(async {
        let loaded = connect::kubeconfig::load(&kubeconfig, None)
            .with_context(|| format!("cannot use the kubeconfig {}", kubeconfig.display()))?;
        let client = connect::client(&loaded.endpoint);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
        match command.action {
            TokenAction::Create { description, .. } => {
                create(&client, &secrets, &description, ttl).await
            }
            TokenAction::List => list(&secrets).await,
            TokenAction::Delete { token } => delete(&secrets, &token).await,
        }
    })?;
    Ok(())
}

async fn create(
    client: &Client,
    secrets: &Api<Secret>,
    description: &str,
    ttl: std::time::Duration,
) -> anyhow::Result<()> {
    let request = http::Request::get("/coracle/v1/ca").body(Vec::new())?;
    let ca_pem = client
        .request_text(request)
        .await
        .map_err(told)
        .context("the server did not show its CA")?;
    let life = (!ttl.is_zero()).then_some(ttl);
    let token = bootstrap_tokens::generate();
    #[allow(clippy::disallowed_methods)] // The binary may read the clock.
    let now = k8s_openapi::jiff::Timestamp::now();
    let secret = bootstrap_tokens::secret(&token, description, life, now);
    let secret: Secret = serde_json::from_value(secret.into_value())?;
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .context("the token was not kept")?;
    show::line(&bootstrap_tokens::join(&token, &ca_pem)?);
    Ok(())
}

async fn list(secrets: &Api<Secret>) -> anyhow::Result<()> {
    let params = ListParams::default().fields(&format!("type={}", bootstrap_tokens::SECRET_TYPE));
    let found = secrets
        .list(&params)
        .await
        .context("cannot list the tokens")?;
    let rows: Vec<Vec<String>> = found
        .items
        .iter()
        .filter_map(TokenInfo::from_secret)
        .map(|info| vec![info.id, info.expires, info.description])
        .collect();
    show::line(&show::columns(&["ID", "EXPIRES", "DESCRIPTION"], &rows));
    Ok(())
}

async fn delete(secrets: &Api<Secret>, token: &str) -> anyhow::Result<()> {
    let Some(id) = bootstrap_tokens::id_of(token) else {
        bail!("{token:?} is neither a token nor the id of one");
    };
    let name = bootstrap_tokens::secret_name(&id);
    secrets
        .delete(&name, &DeleteParams::default())
        .await
        .map_err(told)
        .with_context(|| format!("the token {id} was not deleted"))?;
    show::line(&format!("deleted {id}"));
    Ok(())
}
