//! The file of `--authentication-config`: an AuthenticationConfiguration of
//! `apiserver.config.k8s.io`, read strictly. What its values may be is checked in `validate`.

pub mod validate;

use serde::Deserialize;

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "AuthenticationConfiguration";

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Configuration {
    api_version: String,
    kind: String,
    pub jwt: Vec<JwtAuthenticator>,
    pub anonymous: Option<AnonymousAuth>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AnonymousAuth {
    pub enabled: bool,
    pub conditions: Vec<AnonymousCondition>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AnonymousCondition {
    pub path: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JwtAuthenticator {
    pub issuer: Issuer,
    pub claim_validation_rules: Vec<ClaimRule>,
    pub claim_mappings: ClaimMappings,
    pub user_validation_rules: Vec<UserRule>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Issuer {
    pub url: String,
    #[serde(rename = "discoveryURL")]
    pub discovery_url: String,
    pub certificate_authority: String,
    pub audiences: Vec<String>,
    pub audience_match_policy: String,
    pub egress_selector_type: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClaimRule {
    pub claim: String,
    pub required_value: String,
    pub expression: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UserRule {
    pub expression: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClaimMappings {
    pub username: ClaimOrExpression,
    pub groups: ClaimOrExpression,
    pub uid: ClaimOrExpression,
    pub extra: Vec<ExtraMapping>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClaimOrExpression {
    pub claim: String,
    pub prefix: Option<String>,
    pub expression: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExtraMapping {
    pub key: String,
    pub value_expression: String,
}

impl Configuration {
    /// Reads YAML or JSON; the error is for the operator.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the file is empty".to_owned());
        }
        let read: Self = serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
        let version = read.api_version.strip_prefix(GROUP);
        let version = version.and_then(|rest| rest.strip_prefix('/'));
        if read.kind != KIND || !version.is_some_and(|version| VERSIONS.contains(&version)) {
            return Err(format!(
                "it holds apiVersion {:?} and kind {:?}, where {GROUP}/v1 and {KIND} are expected",
                read.api_version, read.kind
            ));
        }
        Ok(read)
    }
}
