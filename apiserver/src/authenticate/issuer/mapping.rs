//! From the claims of a token to a user, and the rules that both must keep. Pure.

use super::expression::{CLAIMS, Expression, USER};
use crate::authenticate::User;
use crate::authenticate::certificate::CREDENTIAL_ID;
use crate::authenticate::configuration::{ClaimOrExpression, JwtAuthenticator};
use crate::reviews::user_info;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Mapping {
    username: Source,
    groups: Option<Source>,
    uid: Option<Source>,
    extra: Vec<(String, Expression)>,
    required: Vec<(String, String)>,
    claim_rules: Vec<Rule>,
    user_rules: Vec<Rule>,
}

#[derive(Debug)]
enum Source {
    Claim { name: String, prefix: String },
    Expression(Box<Expression>),
}

#[derive(Debug)]
struct Rule {
    expression: Expression,
    message: String,
}

impl Source {
    fn of(mapping: &ClaimOrExpression) -> Option<Self> {
        if !mapping.expression.is_empty() {
            let expression = checked(&mapping.expression, CLAIMS, false);
            return Some(Self::Expression(Box::new(expression)));
        }
        (!mapping.claim.is_empty()).then(|| Self::Claim {
            name: mapping.claim.clone(),
            prefix: mapping.prefix.clone().unwrap_or_default(),
        })
    }
}

fn checked(text: &str, variable: &'static str, is_rule: bool) -> Expression {
    Expression::compile(text, variable, is_rule).expect("validation has compiled it before")
}

fn rule(expression: &str, message: &str, variable: &'static str) -> Rule {
    Rule {
        expression: checked(expression, variable, true),
        message: message.to_owned(),
    }
}

impl Mapping {
    /// Panics on settings that are not valid.
    pub fn new(settings: &JwtAuthenticator) -> Self {
        let mappings = &settings.claim_mappings;
        let rules = &settings.claim_validation_rules;
        let is_expression = |text: &&str| !text.is_empty();
        let extra = mappings.extra.iter();
        let required = rules
            .iter()
            .filter(|rule| is_expression(&rule.claim.as_str()));
        let claim_rules = rules
            .iter()
            .filter(|rule| is_expression(&rule.expression.as_str()));
        let user_rules = settings.user_validation_rules.iter();
        Self {
            username: Source::of(&mappings.username).expect("validation asks for a user name"),
            groups: Source::of(&mappings.groups),
            uid: Source::of(&mappings.uid),
            extra: extra
                .map(|one| {
                    (
                        one.key.clone(),
                        checked(&one.value_expression, CLAIMS, false),
                    )
                })
                .collect(),
            required: required
                .map(|rule| (rule.claim.clone(), rule.required_value.clone()))
                .collect(),
            claim_rules: claim_rules
                .map(|one| rule(&one.expression, &one.message, CLAIMS))
                .collect(),
            user_rules: user_rules
                .map(|one| rule(&one.expression, &one.message, USER))
                .collect(),
        }
    }

    pub fn user(&self, claims: &Value) -> Result<User, String> {
        let user = User {
            name: self.username(claims)?,
            groups: self.groups(claims)?,
            uid: self.uid(claims)?,
            extra: self.extra(claims)?,
        };
        for (claim, wanted) in &self.required {
            let value = claims.get(claim);
            let value = value
                .ok_or_else(|| format!("oidc: required claim {claim} not present in ID token"))?;
            let value = text(value).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
            if value != *wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {value}, want = \
                     {wanted}"
                ));
            }
        }
        keep(&self.claim_rules, claims)
            .map_err(|why| format!("oidc: error evaluating claim validation expression: {why}"))?;
        if !self.user_rules.is_empty() {
            let mut info = user_info(&user);
            for (name, empty) in [
                ("uid", "".into()),
                ("groups", Value::Array(Vec::new())),
                ("extra", Value::Object(serde_json::Map::new())),
            ] {
                if info.get(name).is_none() {
                    info[name] = empty;
                }
            }
            keep(&self.user_rules, &info).map_err(|why| {
                format!("oidc: error evaluating user info validation rule: {why}")
            })?;
        }
        Ok(user)
    }

    fn username(&self, claims: &Value) -> Result<String, String> {
        match &self.username {
            Source::Expression(expression) => {
                let failed = |why: String| {
                    format!("oidc: error evaluating username claim expression: {why}")
                };
                let wrong = || failed("username claim expression must return a string".to_owned());
                match expression
                    .string(claims)
                    .map_err(failed)?
                    .ok_or_else(wrong)?
                {
                    name if name.is_empty() => {
                        Err("oidc: empty username via CEL expression is not allowed".to_owned())
                    }
                    name => Ok(name),
                }
            }
            Source::Claim { name, prefix } => {
                let value = claim(claims, name)
                    .map_err(|why| format!("oidc: parse username claims {name:?}: {why}"))?;
                if name == "email" {
                    verified(claims)?;
                }
                Ok(format!("{prefix}{value}"))
            }
        }
    }

    fn groups(&self, claims: &Value) -> Result<Vec<String>, String> {
        match &self.groups {
            None => Ok(Vec::new()),
            Some(Source::Expression(expression)) => {
                let failed =
                    |why: String| format!("oidc: error evaluating group claim expression: {why}");
                expression.strings(claims).map_err(failed)?.ok_or_else(|| {
                    failed("expression must return a string or a list of strings".to_owned())
                })
            }
            Some(Source::Claim { name, prefix }) => {
                let Some(value) = claims.get(name) else {
                    return Ok(Vec::new());
                };
                let all: Result<Vec<String>, String> = match value {
                    Value::Null => Ok(Vec::new()),
                    Value::Array(all) => all.iter().map(text).collect(),
                    one => text(one).map(|one| vec![one]),
                };
                let all = all.map_err(|why| format!("oidc: parse groups claim {name:?}: {why}"))?;
                Ok(all
                    .into_iter()
                    .map(|one| format!("{prefix}{one}"))
                    .collect())
            }
        }
    }

    fn uid(&self, claims: &Value) -> Result<String, String> {
        match &self.uid {
            None => Ok(String::new()),
            Some(Source::Claim { name, .. }) => {
                claim(claims, name).map_err(|why| format!("oidc: parse uid claim {name:?}: {why}"))
            }
            Some(Source::Expression(expression)) => {
                let failed =
                    |why: String| format!("oidc: error evaluating uid claim expression: {why}");
                expression
                    .string(claims)
                    .map_err(failed)?
                    .ok_or_else(|| failed("uid claim expression must return a string".to_owned()))
            }
        }
    }

    fn extra(&self, claims: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(id) = claims["jti"].as_str().filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.extra {
            let values = expression.strings(claims)?.ok_or_else(|| {
                format!(
                    "oidc: error evaluating extra claim expression: {}: expression must return a \
                     string or a list of strings",
                    expression.text()
                )
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }
}

fn keep(rules: &[Rule], value: &Value) -> Result<(), String> {
    for Rule {
        expression,
        message,
    } in rules
    {
        let kept = expression.bool(value)?;
        if !kept.ok_or_else(|| "validation expression must return a boolean".to_owned())? {
            let text = expression.text();
            return Err(format!("validation expression '{text}' failed: {message}"));
        }
    }
    Ok(())
}

/// An address that its issuer says nobody has verified names nobody.
fn verified(claims: &Value) -> Result<(), String> {
    match claims.get("email_verified") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false) | Value::Null) => Err("oidc: email not verified".to_owned()),
        Some(other) => Err(format!(
            "oidc: parse 'email_verified' claim: {}",
            cannot(other, "bool")
        )),
    }
}

fn claim(claims: &Value, name: &str) -> Result<String, String> {
    text(claims.get(name).ok_or("claim not present")?)
}

fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        other => Err(cannot(other, "string")),
    }
}

/// As Go says it.
fn cannot(value: &Value, wanted: &str) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}
