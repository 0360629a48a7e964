//! A kubeconfig with everything embedded: a key made for it, and a client certificate of the CA.
//! Writing it, mode 0600, is the binary's.

use super::authority::{Authority, LEAF_LIFE, Leaf, Usage};
use super::{ADMIN_USER, PkiError};
use crate::authenticate::user::MASTERS;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::time::Duration;

/// For whom one is made.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub server_url: &'a str,
    pub user: &'a str,
    pub groups: &'a [&'a str],
    pub life: Duration,
}

impl<'a> Order<'a> {
    pub fn admin(server_url: &'a str) -> Self {
        Self {
            server_url,
            user: ADMIN_USER,
            groups: &[MASTERS],
            life: LEAF_LIFE,
        }
    }
}

#[derive(Clone)]
pub struct Kubeconfig {
    pub text: String,
    pub serial: Vec<u8>,
    pub not_after: Timestamp,
    /// A third of its life before its end.
    pub renew_at: Timestamp,
}

/// Says nothing of the key.
impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

pub fn issue(
    authority: &Authority,
    order: &Order<'_>,
    now: Timestamp,
) -> Result<Kubeconfig, PkiError> {
    let leaf = Leaf {
        common_name: order.user,
        organizations: order.groups,
        names: &[],
        usage: Usage::Client,
        life: order.life,
    };
    let issued = authority.issue(&leaf, now)?;
    let third = SignedDuration::try_from(order.life / 3).unwrap_or(SignedDuration::ZERO);
    Ok(Kubeconfig {
        text: text(
            order,
            authority.certificate_pem(),
            &issued.certificate_pem,
            &issued.key_pem,
        ),
        renew_at: issued.not_after.saturating_sub(third).unwrap_or(now),
        serial: issued.serial,
        not_after: issued.not_after,
    })
}

fn text(order: &Order<'_>, ca_pem: &str, certificate_pem: &str, key_pem: &str) -> String {
    // A text in JSON is one in YAML too.
    let quoted = |text: &str| Value::from(text).to_string();
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: coracle
  cluster:
    certificate-authority-data: {ca}
    server: {server}
contexts:
- name: coracle
  context:
    cluster: coracle
    user: {user}
current-context: coracle
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
",
        ca = STANDARD.encode(ca_pem),
        server = quoted(order.server_url),
        user = quoted(order.user),
        certificate = STANDARD.encode(certificate_pem),
        key = STANDARD.encode(key_pem),
    )
}
