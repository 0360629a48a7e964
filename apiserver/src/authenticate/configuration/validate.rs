//! What is wrong with an AuthenticationConfiguration, in upstream's words. Pure.

use super::super::issuer::expression::{CLAIMS, Expression, USER};
use super::{
    ClaimMappings, ClaimOrExpression, ClaimRule, Configuration, ExtraMapping, Issuer, UserRule,
};
use crate::fetch;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::kinds::checks;
use coracle_api::url;
use serde_json::Value;

const AUTHENTICATORS_MAX: usize = 64;
const MATCH_ANY: &str = "MatchAny";
const BOTH: &str = "claim and expression can't both be set";
const NEITHER: &str = "claim or expression is required";
const UNVERIFIED_EMAIL: &str = "claims.email_verified must be used in \
    claimMappings.username.expression or claimMappings.extra[*].valueExpression or \
    claimValidationRules[*].expression when claims.email is used in \
    claimMappings.username.expression";

/// `own_issuers` are those of service accounts, which nobody else may name.
pub fn validate(configuration: &Configuration, own_issuers: &[String]) -> ErrorList {
    let root = Path::root("jwt");
    let mut errors = ErrorList::new();
    let all = &configuration.jwt;
    if all.len() > AUTHENTICATORS_MAX {
        errors.push(FieldError::too_many(&root, all.len(), AUTHENTICATORS_MAX));
        return errors;
    }
    for (at, one) in all.iter().enumerate() {
        let path = root.index(at);
        let before = &all[..at];
        issuer(&mut errors, &one.issuer, own_issuers, &path.child("issuer"));
        let rules = &one.claim_validation_rules;
        claim_rules(&mut errors, rules, &path.child("claimValidationRules"));
        mappings(
            &mut errors,
            &one.claim_mappings,
            rules,
            &path.child("claimMappings"),
        );
        let rules = &one.user_validation_rules;
        user_rules(&mut errors, rules, &path.child("userValidationRules"));
        let path = path.child("issuer");
        let own = &one.issuer;
        if before.iter().any(|other| other.issuer.url == own.url) {
            errors.push(FieldError::duplicate(&path.child("url"), own.url.as_str()));
        }
        let elsewhere = own.discovery_url.as_str();
        let is_there_twice = before
            .iter()
            .any(|other| other.issuer.discovery_url == elsewhere);
        if !elsewhere.is_empty() && is_there_twice {
            errors.push(FieldError::duplicate(
                &path.child("discoveryURL"),
                elsewhere,
            ));
        }
    }
    if let Some(anonymous) = &configuration.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let paths = anonymous.conditions.iter().map(|one| one.path.as_str());
        errors.push(FieldError::invalid(
            &Path::root("anonymous").child("conditions"),
            paths.collect::<Value>(),
            "enabled should be set to true when conditions are defined",
        ));
    }
    errors
}

fn issuer(errors: &mut ErrorList, issuer: &Issuer, own_issuers: &[String], path: &Path) {
    let at = path.child("url");
    if issuer.url.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        https_url(errors, &issuer.url, own_issuers, &at);
    }
    let elsewhere = issuer.discovery_url.as_str();
    if !elsewhere.is_empty() {
        let at = path.child("discoveryURL");
        let is_same = elsewhere.trim_end_matches('/') == issuer.url.trim_end_matches('/');
        if is_same && !issuer.url.is_empty() {
            let why = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(&at, elsewhere, why));
        }
        https_url(errors, elsewhere, &[], &at);
    }
    audiences(errors, issuer, path);
    let authority = issuer.certificate_authority.as_str();
    if !authority.is_empty()
        && let Err(error) = fetch::trusting(Some(authority))
    {
        let at = path.child("certificateAuthority");
        errors.push(FieldError::invalid(&at, "<omitted>", error.to_string()));
    }
    let selector = issuer.egress_selector_type.as_str();
    if !matches!(selector, "" | "controlplane" | "cluster") {
        let why = "egress selector must be either controlplane or cluster";
        let at = path.child("egressSelectorType");
        errors.push(FieldError::invalid(&at, selector, why));
    }
}

fn https_url(errors: &mut ErrorList, text: &str, disallowed: &[String], path: &Path) {
    let mut invalid = |why: String| errors.push(FieldError::invalid(path, text, why));
    if disallowed.iter().any(|one| one == text) {
        let mut sorted = disallowed.to_vec();
        sorted.sort_unstable();
        invalid(format!(
            "URL must not overlap with disallowed issuers: [{}]",
            sorted.join(" ")
        ));
    }
    let parsed = match url::parse(text) {
        Ok(parsed) => parsed,
        Err(why) => return invalid(why),
    };
    for (is_wrong, why) in [
        (parsed.scheme != "https", "URL scheme must be https"),
        (
            parsed.user.is_some(),
            "URL must not contain a username or password",
        ),
        (!parsed.query.is_empty(), "URL must not contain a query"),
        (
            !parsed.fragment.is_empty(),
            "URL must not contain a fragment",
        ),
    ] {
        if is_wrong {
            invalid(why.to_owned());
        }
    }
}

fn audiences(errors: &mut ErrorList, issuer: &Issuer, path: &Path) {
    let (at, policy_at) = (path.child("audiences"), path.child("audienceMatchPolicy"));
    let audiences = &issuer.audiences;
    if audiences.is_empty() {
        let why = format!("at least one {at} is required");
        errors.push(FieldError::required(&at, why));
        return;
    }
    for (index, audience) in audiences.iter().enumerate() {
        let at = at.index(index);
        if audience.is_empty() {
            errors.push(FieldError::required(&at, ""));
        }
        if audiences[..index].contains(audience) {
            errors.push(FieldError::duplicate(&at, audience.as_str()));
        }
    }
    let policy = issuer.audience_match_policy.as_str();
    let why = match audiences.len() {
        1 if matches!(policy, "" | MATCH_ANY) => return,
        1 => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ if policy == MATCH_ANY => return,
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(FieldError::invalid(&policy_at, policy, why));
}

/// Adds what is wrong with an expression, and gives back one that can be read.
fn compiled(
    errors: &mut ErrorList,
    text: &str,
    variable: &'static str,
    is_rule: bool,
    path: &Path,
) -> Option<Expression> {
    match Expression::compile(text, variable, is_rule) {
        Ok(expression) => Some(expression),
        Err(why) => {
            errors.push(FieldError::invalid(path, text, why));
            None
        }
    }
}

fn claim_rules(errors: &mut ErrorList, rules: &[ClaimRule], path: &Path) {
    for (index, rule) in rules.iter().enumerate() {
        let (at, before) = (path.index(index), &rules[..index]);
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => errors.push(FieldError::required(&at, NEITHER)),
            ("", expression) => {
                if !rule.required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    let value = rule.required_value.as_str();
                    errors.push(FieldError::invalid(&at.child("requiredValue"), value, why));
                }
                let at = at.child("expression");
                if before.iter().any(|other| other.expression == expression) {
                    errors.push(FieldError::duplicate(&at, expression));
                } else {
                    compiled(errors, expression, CLAIMS, true, &at);
                }
            }
            (claim, "") => {
                if !rule.message.is_empty() {
                    let why = "may not be specified when claim is set";
                    let value = rule.message.as_str();
                    errors.push(FieldError::invalid(&at.child("message"), value, why));
                }
                if before.iter().any(|other| other.claim == claim) {
                    errors.push(FieldError::duplicate(&at.child("claim"), claim));
                }
            }
            (claim, _) => errors.push(FieldError::invalid(&at, claim, BOTH)),
        }
    }
}

fn user_rules(errors: &mut ErrorList, rules: &[UserRule], path: &Path) {
    for (index, rule) in rules.iter().enumerate() {
        let at = path.index(index).child("expression");
        let expression = rule.expression.as_str();
        let before = &rules[..index];
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if before.iter().any(|other| other.expression == expression) {
            errors.push(FieldError::duplicate(&at, expression));
        } else {
            compiled(errors, expression, USER, true, &at);
        }
    }
}

fn mappings(errors: &mut ErrorList, all: &ClaimMappings, rules: &[ClaimRule], path: &Path) {
    let username = claim_or_expression(errors, &all.username, true, &path.child("username"));
    claim_or_expression(errors, &all.groups, false, &path.child("groups"));
    let uid = path.child("uid");
    match (all.uid.claim.is_empty(), all.uid.expression.as_str()) {
        (_, "") => {}
        (true, expression) => {
            compiled(errors, expression, CLAIMS, false, &uid.child("expression"));
        }
        (false, _) => errors.push(FieldError::invalid(&uid, "", BOTH)),
    }
    let extra = extra(errors, &all.extra, &path.child("extra"));
    let uses = |one: &Expression, field| one.selects(CLAIMS, field);
    let rules = rules.iter().filter(|rule| !rule.expression.is_empty());
    let rules = rules.filter_map(|rule| Expression::compile(&rule.expression, CLAIMS, true).ok());
    let rules: Vec<Expression> = rules.collect();
    let mut all_used = username.iter().chain(&extra).chain(&rules);
    let is_email = username.as_ref().is_some_and(|one| uses(one, "email"));
    if is_email && !all_used.any(|one| uses(one, "email_verified")) {
        let at = path.child("username").child("expression");
        let value = all.username.expression.as_str();
        errors.push(FieldError::invalid(&at, value, UNVERIFIED_EMAIL));
    }
}

fn claim_or_expression(
    errors: &mut ErrorList,
    mapping: &ClaimOrExpression,
    is_required: bool,
    path: &Path,
) -> Option<Expression> {
    match (mapping.claim.as_str(), mapping.expression.as_str()) {
        ("", "") if is_required => errors.push(FieldError::required(path, NEITHER)),
        ("", "") => {}
        ("", expression) => {
            if let Some(prefix) = &mapping.prefix {
                let why = "may not be specified when expression is set";
                let at = path.child("prefix");
                errors.push(FieldError::invalid(&at, prefix.as_str(), why));
            }
            return compiled(errors, expression, CLAIMS, false, &path.child("expression"));
        }
        (_, "") => {
            if mapping.prefix.is_none() {
                let why = "prefix is required when claim is set. It can be set to an empty \
                           string to disable prefixing";
                errors.push(FieldError::required(&path.child("prefix"), why));
            }
        }
        _ => errors.push(FieldError::invalid(path, "", BOTH)),
    }
    None
}

fn extra(errors: &mut ErrorList, all: &[ExtraMapping], path: &Path) -> Vec<Expression> {
    let mut read = Vec::new();
    for (index, mapping) in all.iter().enumerate() {
        let at = path.index(index);
        let (key, key_at) = (mapping.key.as_str(), at.child("key"));
        checks::domain_prefixed_path(errors, key, &key_at);
        if key != key.to_lowercase() {
            errors.push(FieldError::invalid(&key_at, key, "must be lowercase"));
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_own = |own: &str| {
            let below = domain.strip_suffix(own);
            below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_own("kubernetes.io") || is_own("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            errors.push(FieldError::invalid(&key_at, key, why));
        }
        if all[..index].iter().any(|other| other.key == mapping.key) {
            errors.push(FieldError::duplicate(&key_at, key));
            continue;
        }
        let at = at.child("valueExpression");
        match mapping.value_expression.as_str() {
            "" => errors.push(FieldError::required(&at, "")),
            expression => read.extend(compiled(errors, expression, CLAIMS, false, &at)),
        }
    }
    read
}

#[cfg(test)]
mod tests;
