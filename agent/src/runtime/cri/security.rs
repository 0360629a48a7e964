//! How a container is confined, in the words of the interface. Pure.

use super::super::RuntimeError;
use super::super::contract::{AppArmor, Seccomp, Security};
use super::super::spec::{MASKED, READ_ONLY};
use super::messages::*;

/// `image` says whom the container runs as when nobody else does.
pub fn context(
    security: &Security,
    image: &Image,
    namespaces: NamespaceOption,
    has_strict_groups: bool,
) -> Result<LinuxContainerSecurityContext, RuntimeError> {
    if security.strict_groups && !has_strict_groups {
        let text = "SupplementalGroupsPolicy=Strict is not supported by the runtime";
        return Err(RuntimeError::Invalid(text.to_owned()));
    }
    let number = |value: i64| Int64Value { value };
    let user = security
        .run_as_user
        .map(number)
        .or_else(|| image.uid.clone());
    let hides = !security.privileged && !security.unmasked_proc;
    let paths = |all: &[&str]| match hides {
        true => all.iter().map(|path| (*path).to_owned()).collect(),
        false => Vec::new(),
    };
    Ok(LinuxContainerSecurityContext {
        capabilities: Some(Capability {
            add_capabilities: security.add_capabilities.clone(),
            drop_capabilities: security.drop_capabilities.clone(),
        }),
        privileged: security.privileged,
        namespace_options: Some(namespaces),
        run_as_username: match user {
            Some(_) => String::new(),
            None => image.username.clone(),
        },
        run_as_user: user,
        run_as_group: security.run_as_group.map(number),
        readonly_rootfs: security.read_only_root_filesystem,
        supplemental_groups: security.supplemental_groups.clone(),
        supplemental_groups_policy: if security.strict_groups {
            GROUPS_STRICT
        } else {
            0
        },
        no_new_privs: !security.allow_privilege_escalation,
        masked_paths: paths(&MASKED),
        readonly_paths: paths(&READ_ONLY),
        seccomp: Some(seccomp(&security.seccomp)),
        apparmor: app_armor(&security.app_armor),
    })
}

fn profile(profile_type: i32, localhost_ref: String) -> SecurityProfile {
    SecurityProfile {
        profile_type,
        localhost_ref,
    }
}

fn seccomp(asked: &Seccomp) -> SecurityProfile {
    match asked {
        Seccomp::Unconfined => profile(PROFILE_UNCONFINED, String::new()),
        Seccomp::RuntimeDefault => profile(PROFILE_RUNTIME_DEFAULT, String::new()),
        Seccomp::Localhost(path) => profile(PROFILE_LOCALHOST, path.display().to_string()),
    }
}

fn app_armor(asked: &AppArmor) -> Option<SecurityProfile> {
    match asked {
        AppArmor::Unsaid => None,
        AppArmor::Unconfined => Some(profile(PROFILE_UNCONFINED, String::new())),
        AppArmor::RuntimeDefault => Some(profile(PROFILE_RUNTIME_DEFAULT, String::new())),
        AppArmor::Localhost(name) => Some(profile(PROFILE_LOCALHOST, name.clone())),
    }
}
