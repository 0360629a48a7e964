//! One policy as it is written, read and compiled once. Pure.

use super::constraints::Constraints;
use super::params::ParamKind;
use coracle_api::cel::evaluate::{Program, Variable, is_deep};
use coracle_api::json;
use coracle_api::kinds::admission_registration::expressions::Scope;
use coracle_api::object::Object;
use serde_json::Value;

#[derive(Debug)]
pub struct Policy {
    pub name: String,
    pub constraints: Option<Constraints>,
    pub ignores_failures: bool,
    pub params: Option<ParamKind>,
    pub conditions: Vec<Expression>,
    pub variables: Vec<Variable>,
    pub validations: Vec<Validation>,
    pub annotations: Vec<Annotation>,
    pub mutations: Vec<Mutation>,
    /// It is asked again when something changes after it.
    pub is_asked_again: bool,
    /// Its expressions recurse deeper than a worker's stack takes.
    pub is_deep: bool,
    /// Its expressions loop, and may take a while.
    pub is_slow: bool,
}

/// What is wrong with an expression is told when it would be evaluated.
#[derive(Debug)]
pub struct Expression {
    pub text: String,
    pub program: Result<Program, String>,
}

#[derive(Debug)]
pub struct Validation {
    pub rule: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: Option<String>,
}

#[derive(Debug)]
pub struct Mutation {
    pub kind: PatchKind,
    pub patch: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// A configuration that is laid over the object.
    Apply,
    /// Operations of RFC 6902.
    Operations,
}

#[derive(Debug)]
pub struct Annotation {
    pub key: String,
    pub value: Expression,
}

impl Expression {
    fn new(text: &str, scope: &Scope) -> Self {
        Self {
            text: text.to_owned(),
            program: scope.program(text),
        }
    }
}

impl Policy {
    pub fn read(object: &Object) -> Self {
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let params = json::some(spec, "paramKind").map(ParamKind::read);
        let has_params = params.is_some();
        let (scope, variables) = Scope::of_policy(json::list(spec, "variables"), has_params);
        let unvaried = scope.clone().without_variables();
        let plain = scope.clone().without_authorizer();
        let validations = json::list(spec, "validations").iter();
        let annotations = json::list(spec, "auditAnnotations").iter();
        let conditions = json::list(spec, "matchConditions").iter();
        let patches = scope.clone().with_patches();
        let mutations = json::list(spec, "mutations").iter();
        let mut policy = Self {
            name: object.name().to_owned(),
            constraints: json::some(spec, "matchConstraints").map(Constraints::read),
            ignores_failures: json::text(spec, "failurePolicy") == "Ignore",
            params,
            conditions: conditions
                .map(|one| Expression::new(json::text(one, "expression"), &unvaried))
                .collect(),
            variables,
            validations: validations
                .map(|one| Validation::read(one, &scope, &plain))
                .collect(),
            annotations: annotations
                .map(|one| Annotation {
                    key: json::text(one, "key").to_owned(),
                    value: Expression::new(json::text(one, "valueExpression"), &scope),
                })
                .collect(),
            mutations: mutations.map(|one| Mutation::read(one, &patches)).collect(),
            is_asked_again: json::text(spec, "reinvocationPolicy") == "IfNeeded",
            is_deep: false,
            is_slow: false,
        };
        policy.is_deep = is_deep(&policy.variables, policy.programs());
        let variables = policy.variables.iter();
        let of_variables = variables.filter_map(|one| one.program.as_ref().ok());
        let is_slow = of_variables.chain(policy.programs()).any(Program::loops);
        policy.is_slow = is_slow;
        policy
    }

    /// All but those of variables.
    fn programs(&self) -> impl Iterator<Item = &Program> {
        let validations = self.validations.iter();
        let of_validations =
            validations.flat_map(|one| [Some(&one.rule), one.message_expression.as_ref()]);
        let annotations = self.annotations.iter().map(|one| &one.value);
        let mutations = self.mutations.iter().map(|one| &one.patch);
        let all = of_validations.flatten().chain(annotations).chain(mutations);
        all.chain(&self.conditions)
            .filter_map(|one| one.program.as_ref().ok())
    }
}

impl Mutation {
    fn read(mutation: &Value, scope: &Scope) -> Self {
        let (kind, field) = match json::text(mutation, "patchType") {
            "JSONPatch" => (PatchKind::Operations, "jsonPatch"),
            _ => (PatchKind::Apply, "applyConfiguration"),
        };
        let text = json::text(json::get(mutation, field), "expression");
        Self {
            kind,
            patch: Expression::new(text, scope),
        }
    }
}

impl Validation {
    fn read(validation: &Value, scope: &Scope, of_message: &Scope) -> Self {
        let text = |name: &str| Some(json::text(validation, name)).filter(|text| !text.is_empty());
        Self {
            rule: Expression::new(json::text(validation, "expression"), scope),
            message: text("message").unwrap_or_default().to_owned(),
            message_expression: text("messageExpression")
                .map(|text| Expression::new(text, of_message)),
            reason: text("reason").map(str::to_owned),
        }
    }
}
