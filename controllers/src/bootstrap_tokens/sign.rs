//! Signatures of `cluster-info`: JSON Web Signatures by HS256 without their content (RFC 7515,
//! appendix F), so that who knows a token can tell that the kubeconfig is the cluster's. Pure.

use super::token::Token;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use k8s_openapi::api::core::v1::ConfigMap;
use ring::hmac;
use serde_json::json;
use std::collections::BTreeMap;

const KUBECONFIG: &str = "kubeconfig";
const PREFIX: &str = "jws-kubeconfig-";

/// The ConfigMap with the signatures of these tokens and no others; `None` when it has them, or
/// nothing to sign.
pub fn signed<'a>(map: &ConfigMap, tokens: impl Iterator<Item = Token<'a>>) -> Option<ConfigMap> {
    let data = map.data.as_ref()?;
    let content = data.get(KUBECONFIG)?;
    let others = data.iter().filter(|(key, _)| !key.starts_with(PREFIX));
    let others = others.map(|(key, value)| (key.clone(), value.clone()));
    let own = tokens.map(|token| {
        let key = format!("{PREFIX}{}", token.id);
        (key, signature(content, token))
    });
    let wanted: BTreeMap<String, String> = others.chain(own).collect();
    (wanted != *data).then(|| ConfigMap {
        data: Some(wanted),
        ..map.clone()
    })
}

fn signature(content: &str, token: Token<'_>) -> String {
    let header = json!({ "alg": "HS256", "kid": token.id }).to_string();
    let header = BASE64.encode(header);
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.secret.as_bytes());
    let text = format!("{header}.{}", BASE64.encode(content));
    let signature = BASE64.encode(hmac::sign(&key, text.as_bytes()));
    format!("{header}..{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kubeadm's own check accepts.
    #[test]
    fn a_signature_is_upstreams() {
        let content = "Hello from the other side. I must have called a thousand times.";
        let token = Token {
            id: "joshua",
            secret: "my voice is my passcode",
        };
        let header = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9";
        let of = |content| signature(content, token);
        let expected = "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
        assert_eq!(of(content), format!("{header}..{expected}"));
        let expected = "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk";
        assert_eq!(of(""), format!("{header}..{expected}"));
    }
}
