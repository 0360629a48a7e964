//! All issuers of tokens outside the cluster, from the file of `--authentication-config`, which is
//! read again when it changes.
//!
//! A change counts once it is valid and each issuer's keys can be found; until then the issuers
//! stay that were there before. Who may be anonymous is settled at start.

use super::configuration::validate::validate;
use super::configuration::{AnonymousAuth, Configuration};
use super::issuer::Issuer;
use super::{Anonymous, User};
use crate::jose;
use futures::future::{join_all, try_join_all};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the file is looked at, and issuers that cannot be reached are tried again.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The largest has 64 issuers, each with a bundle of certificates.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("cannot read the authentication configuration {path}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("failed to load authentication configuration from file {path:?}: {why}")]
    Invalid { path: String, why: String },
}

/// How often the file was read again.
#[derive(Debug, Default)]
pub struct Reloads {
    pub done: AtomicU64,
    pub failed: AtomicU64,
}

#[derive(Debug)]
pub struct Issuers {
    file: PathBuf,
    /// Those of service accounts, which nobody else may name.
    own_issuers: Vec<String>,
    anonymous: Option<AnonymousAuth>,
    issuers: RwLock<Arc<[Arc<Issuer>]>>,
    /// The text that is in force, or that is not looked at again.
    seen: Mutex<String>,
    pub reloads: Arc<Reloads>,
}

impl Issuers {
    pub fn open(file: &Path, own_issuers: &[String]) -> Result<Self, ConfigurationError> {
        let text = read(file)?;
        let invalid = |why| ConfigurationError::Invalid {
            path: file.display().to_string(),
            why,
        };
        let configuration = parse(&text, own_issuers).map_err(invalid)?;
        let issuers = build(&configuration, &[]).map_err(invalid)?;
        Ok(Self {
            file: file.to_owned(),
            own_issuers: own_issuers.to_vec(),
            anonymous: configuration.anonymous,
            issuers: RwLock::new(issuers),
            seen: Mutex::new(text),
            reloads: Arc::default(),
        })
    }

    /// What the file says about requests without a user; `None` when it says nothing.
    pub fn anonymous(&self) -> Option<Anonymous> {
        let anonymous = self.anonymous.as_ref()?;
        if !anonymous.enabled || anonymous.conditions.is_empty() {
            return Some(Anonymous::from_flag(anonymous.enabled));
        }
        let paths = anonymous.conditions.iter().map(|one| one.path.clone());
        Some(Anonymous::Paths(paths.collect()))
    }

    /// `None` for a token that names none of the issuers.
    pub async fn user(&self, token: &str, now: Timestamp) -> Option<Result<User, String>> {
        // By the issuer that it names; nothing of it is believed yet.
        let named = jose::issuer(token)?;
        let issuers = Arc::clone(&self.issuers.read());
        let issuer = issuers.iter().find(|one| one.is_named(&named))?;
        Some(issuer.user(token, now).await)
    }

    /// Finds keys of issuers and follows the file until shutdown.
    pub async fn follow(&self, clock: impl Fn() -> Timestamp, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let looked = shutdown.run_until_cancelled(self.look(clock())).await;
            if looked.is_none() {
                return;
            }
        }
    }

    /// One look at everything: the file first, which may take out an issuer that does not answer;
    /// then all issuers at once, so that none waits for another.
    pub async fn look(&self, now: Timestamp) {
        match self.reload().await {
            Ok(false) => {}
            Ok(true) => {
                self.reloads.done.fetch_add(1, Ordering::Relaxed);
                tracing::info!(path = %self.file.display(), "reloaded authentication config");
            }
            Err(error) => {
                self.reloads.failed.fetch_add(1, Ordering::Relaxed);
                let path = self.file.display();
                tracing::error!(%path, error, "the authentication configuration did not change");
            }
        }
        let issuers = Arc::clone(&self.issuers.read());
        join_all(issuers.iter().map(|issuer| look_at(issuer, now))).await;
    }

    /// True when there was something new.
    async fn reload(&self) -> Result<bool, String> {
        let text = read(&self.file).map_err(|error| error.to_string())?;
        if *self.seen.lock() == text {
            return Ok(false);
        }
        let before = Arc::clone(&self.issuers.read());
        let built = parse(&text, &self.own_issuers).and_then(|configuration| {
            if configuration.anonymous != self.anonymous {
                return Err(
                    "anonymous: Forbidden: changed from initial configuration file".to_owned(),
                );
            }
            build(&configuration, &before)
        });
        let issuers = match built {
            Ok(issuers) => issuers,
            Err(why) => {
                // It will not become better by itself.
                *self.seen.lock() = text;
                return Err(why);
            }
        };
        try_join_all(issuers.iter().map(|issuer| issuer.discover())).await?;
        *self.issuers.write() = issuers;
        *self.seen.lock() = text;
        Ok(true)
    }
}

async fn look_at(issuer: &Issuer, now: Timestamp) {
    match issuer.discover().await {
        Ok(()) => issuer.refresh(now).await,
        Err(error) => tracing::error!(
            issuer = issuer.url(),
            error,
            "an issuer's keys are not found"
        ),
    }
}

fn read(file: &Path) -> Result<String, ConfigurationError> {
    let failed = |source| ConfigurationError::Read {
        path: file.display().to_string(),
        source,
    };
    if std::fs::metadata(file).map_err(failed)?.len() > BYTES_MAX {
        return Err(ConfigurationError::Invalid {
            path: file.display().to_string(),
            why: format!("it is larger than {BYTES_MAX} bytes"),
        });
    }
    std::fs::read_to_string(file).map_err(failed)
}

fn parse(text: &str, own_issuers: &[String]) -> Result<Configuration, String> {
    let configuration = Configuration::read(text)?;
    let errors: Vec<String> = validate(&configuration, own_issuers)
        .iter()
        .map(ToString::to_string)
        .collect();
    match errors.as_slice() {
        [] => Ok(configuration),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// An issuer whose settings are the same goes on with the keys that it has.
fn build(
    configuration: &Configuration,
    before: &[Arc<Issuer>],
) -> Result<Arc<[Arc<Issuer>]>, String> {
    let built = configuration.jwt.iter().map(|settings| {
        match before.iter().find(|issuer| issuer.settings() == settings) {
            Some(issuer) => Ok(Arc::clone(issuer)),
            None => Issuer::new(settings)
                .map(Arc::new)
                .map_err(|error| format!("issuer {:?}: {error}", settings.issuer.url)),
        }
    });
    built.collect()
}

#[cfg(test)]
mod tests;
