//! What a CSIDriver object says of its driver, and what follows from there being none. Pure; words
//! are upstream's.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::{CSIDriver, CSIDriverSpec};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifecycle {
    Persistent,
    /// As long as the pod.
    Ephemeral,
}

impl Lifecycle {
    pub fn name(self) -> &'static str {
        match self {
            Self::Persistent => "Persistent",
            Self::Ephemeral => "Ephemeral",
        }
    }
}

/// What is known of a driver.
#[derive(Clone, Debug)]
pub struct Driver {
    name: String,
    spec: Option<CSIDriverSpec>,
}

impl Driver {
    /// `found` is the object of that name.
    pub fn new(name: &str, found: Option<CSIDriver>) -> Self {
        Self {
            name: name.to_owned(),
            spec: found.map(|found| found.spec),
        }
    }

    fn says(&self, what: impl FnOnce(&CSIDriverSpec) -> Option<bool>) -> Option<bool> {
        self.spec.as_ref().and_then(what)
    }

    pub fn is_attached(&self) -> bool {
        self.says(|spec| spec.attach_required) != Some(false)
    }

    pub fn is_published_again(&self) -> bool {
        self.says(|spec| spec.requires_republish) == Some(true)
    }

    pub fn check(&self, lifecycle: Lifecycle) -> Result<(), String> {
        let (name, wanted) = (&self.name, lifecycle.name());
        let Some(spec) = &self.spec else {
            return match lifecycle {
                Lifecycle::Persistent => Ok(()),
                Lifecycle::Ephemeral => Err(format!(
                    "volume mode {wanted:?} not supported by driver {name} (no CSIDriver object)"
                )),
            };
        };
        let modes = spec.volume_lifecycle_modes.as_deref().unwrap_or_default();
        if modes.iter().any(|mode| mode == wanted) {
            return Ok(());
        }
        let modes: Vec<String> = modes.iter().map(|mode| format!("{mode:?}")).collect();
        let modes = modes.join(" ");
        Err(format!(
            "volume mode {wanted:?} not supported by driver {name} (only supports [{modes}])"
        ))
    }

    /// Whether the node gives a volume to the pod's group; None for access modes that are not
    /// those of a claim.
    pub fn gives_group(
        &self,
        fs_type: &str,
        access_modes: Option<&[String]>,
        read_only: bool,
    ) -> bool {
        let policy = self.spec.as_ref();
        let policy = policy.and_then(|spec| spec.fs_group_policy.as_deref());
        match policy.unwrap_or("ReadWriteOnceWithFSType") {
            _ if read_only => false,
            "None" => false,
            "File" => true,
            _ if fs_type.is_empty() => false,
            _ => access_modes.is_none_or(|modes| {
                let mut modes = modes.iter();
                modes.any(|mode| mode == "ReadWriteOnce" || mode == "ReadWriteOncePod")
            }),
        }
    }

    /// What the driver wants to know of the pod.
    pub fn pod_attributes(&self, pod: &Pod, lifecycle: Lifecycle) -> BTreeMap<String, String> {
        if self.says(|spec| spec.pod_info_on_mount) != Some(true) {
            return BTreeMap::new();
        }
        let meta = &pod.metadata;
        let account = pod.spec.as_ref();
        let account = account.and_then(|spec| spec.service_account_name.as_deref());
        let is_ephemeral = lifecycle == Lifecycle::Ephemeral;
        let all = [
            ("pod.name", meta.name.as_deref().unwrap_or_default()),
            (
                "pod.namespace",
                meta.namespace.as_deref().unwrap_or_default(),
            ),
            ("pod.uid", meta.uid.as_deref().unwrap_or_default()),
            ("serviceAccount.name", account.unwrap_or_default()),
            ("ephemeral", if is_ephemeral { "true" } else { "false" }),
        ];
        let all = all.into_iter();
        all.map(|(key, value)| (format!("csi.storage.k8s.io/{key}"), value.to_owned()))
            .collect()
    }

    /// Audiences and lives of the tokens that it wants; none of a life is left to the server.
    pub fn tokens(&self) -> Vec<(String, Option<i64>)> {
        let spec = self.spec.as_ref();
        let all = spec.and_then(|spec| spec.token_requests.as_ref());
        let all = all.into_iter().flatten();
        all.map(|one| (one.audience.clone(), one.expiration_seconds))
            .collect()
    }

    pub fn has_tokens_in_secrets(&self) -> bool {
        self.says(|spec| spec.service_account_token_in_secrets) == Some(true)
    }
}

#[cfg(test)]
mod tests;
