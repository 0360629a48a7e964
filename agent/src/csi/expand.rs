//! A volume that a controller has made larger is told to its driver on the node.

use super::messages::{EXPAND_VOLUME, STAGE_UNSTAGE_VOLUME};
use super::{Csi, Wanted, secret_name};
use std::path::Path;

impl Csi {
    /// False for a driver that does nothing on the node; errors in upstream's words.
    pub async fn expand(
        &self,
        wanted: &Wanted,
        uid: &str,
        place: &Path,
        bytes: i64,
    ) -> Result<bool, String> {
        let node = self.node(&wanted.driver)?;
        let has = node.capabilities().await.map_err(|status| {
            format!("Expander.NodeExpand failed to check if node supports expansion : {status}")
        })?;
        if !has.has(EXPAND_VOLUME) {
            return Ok(false);
        }
        let secrets = self.secrets(wanted.expand_secret.as_ref()).await;
        let secrets = secrets.map_err(|error| {
            let name = secret_name(wanted.expand_secret.as_ref());
            format!("expander.NodeExpand failed to get NodeExpandSecretRef {name}: {error}")
        })?;
        let staged = match has.has(STAGE_UNSTAGE_VOLUME) {
            true => self.shown(&self.staged_place(wanted, uid)),
            false => String::new(),
        };
        let places = [staged, self.shown(place)];
        let question = wanted.expand_question(&has, places, bytes, secrets);
        let done = node.expand(&question).await;
        done.map(|()| true)
            .map_err(|status| format!("Expander.NodeExpand failed to expand the volume : {status}"))
    }
}
