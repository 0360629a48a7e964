//! The rules of a schema where they stand, compiled once for all objects.

use crate::cel::budget::Budget;
use crate::cel::environment::Environment;
use crate::cel::evaluate::{Program, SHALLOW_DEPTH_MAX};
use crate::cel::types::Type;
use crate::json;
use serde_json::Value;
use std::collections::BTreeMap;

const FIELD: &str = "x-kubernetes-validations";
/// The name of the type of `self`, which no expression can name.
const SELF: &str = "selfType@";

/// Only what leads to rules.
#[derive(Debug, Default)]
pub struct Tree {
    pub rules: Vec<Rule>,
    /// Why none of them can be run.
    pub fault: Option<String>,
    pub is_resource: bool,
    pub properties: BTreeMap<String, Tree>,
    pub additional: Option<Box<Tree>>,
    pub items: Option<Box<Tree>>,
    pub all_of: Vec<Tree>,
}

#[derive(Debug)]
pub struct Rule {
    pub program: Result<Program, String>,
    pub message_program: Option<Program>,
    pub uses_old: bool,
    pub old_is_optional: bool,
    text: String,
    message: String,
    pub reason: String,
    pub field_path: Option<String>,
}

impl Rule {
    pub fn message_uses_old(&self) -> bool {
        let program = self.message_program.as_ref();
        program.is_some_and(|program| program.compiled.names("oldSelf"))
    }

    /// As errors name the rule.
    pub fn shown(&self) -> &str {
        match self.message.trim() {
            "" => self.text.trim(),
            message => message,
        }
    }

    pub fn message_or_default(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.shown()),
            message => message.to_owned(),
        }
    }
}

impl Tree {
    /// `None` for a schema without rules. What may be named was checked with the definition.
    pub fn of(schema: &Value) -> Option<Self> {
        Self::below(schema, schema, true, &Budget::default())
    }

    /// `stated` has the rules, `node` the types: they differ within `allOf`.
    fn below(stated: &Value, node: &Value, is_resource: bool, budget: &Budget) -> Option<Self> {
        let embedded = |one: &Value| json::flag(one, "x-kubernetes-embedded-resource");
        let inner = |stated: &Value, node: &Value| {
            if stated.is_object() && node.is_object() {
                Self::below(stated, node, embedded(node), budget)
            } else {
                None
            }
        };
        let mut tree = Self {
            is_resource,
            ..Self::default()
        };
        let stated_rules = json::list(stated, FIELD);
        if !stated_rules.is_empty() {
            match environments(node, is_resource, budget) {
                Some(environments) => {
                    let rules = stated_rules.iter();
                    tree.rules = rules.map(|one| rule(one, &environments)).collect();
                }
                None => tree.fault = Some("failed to retrieve type information".to_owned()),
            }
        }
        let nodes = json::get(node, "properties");
        for (name, property) in json::entries(stated, "properties") {
            if let Some(found) = inner(property, json::get(nodes, name)) {
                tree.properties.insert(name.to_owned(), found);
            }
        }
        for (field, slot) in [
            ("additionalProperties", &mut tree.additional),
            ("items", &mut tree.items),
        ] {
            *slot = inner(json::get(stated, field), json::get(node, field)).map(Box::new);
        }
        let clauses = json::list(stated, "allOf").iter();
        let clauses = clauses.filter_map(|one| Self::below(one, node, is_resource, budget));
        tree.all_of = clauses.collect();
        tree.has_any().then_some(tree)
    }

    fn has_any(&self) -> bool {
        !self.rules.is_empty()
            || self.fault.is_some()
            || !self.properties.is_empty()
            || self.additional.is_some()
            || self.items.is_some()
            || !self.all_of.is_empty()
    }

    /// Whether a rule recurses deeper than a worker's stack takes.
    pub fn is_deep(&self) -> bool {
        let programs = self.rules.iter().flat_map(|rule| {
            let own = rule.program.as_ref().ok();
            own.into_iter().chain(&rule.message_program)
        });
        let mut depths = programs.map(Program::depth);
        let inner = self.properties.values().chain(&self.all_of);
        let boxed = self.additional.iter().chain(&self.items);
        depths.any(|depth| depth > SHALLOW_DEPTH_MAX)
            || inner.chain(boxed.map(|one| &**one)).any(Self::is_deep)
    }
}

struct Environments {
    with_old: Environment,
    with_optional: Environment,
}

fn environments(node: &Value, is_resource: bool, budget: &Budget) -> Option<Environments> {
    let mut environment = Environment::default().within(budget);
    let of_self = environment.of_schema(node, is_resource, SELF)?;
    let environment = environment.with("self", of_self.clone());
    Some(Environments {
        with_old: environment.clone().with("oldSelf", of_self.clone()),
        with_optional: environment.with("oldSelf", Type::optional(of_self)),
    })
}

fn rule(stated: &Value, environments: &Environments) -> Rule {
    let text = |name: &str| json::text(stated, name).to_owned();
    let old_is_optional = json::flag(stated, "optionalOldSelf");
    let environment = if old_is_optional {
        &environments.with_optional
    } else {
        &environments.with_old
    };
    let program = Program::compile(json::text(stated, "rule"), environment);
    let of_message = json::text(stated, "messageExpression");
    let message = (!of_message.is_empty()).then(|| Program::compile(of_message, environment));
    let names_old = |program: &Program| program.compiled.names("oldSelf");
    let field_path = json::text(stated, "fieldPath");
    Rule {
        uses_old: program.as_ref().is_ok_and(names_old),
        program,
        message_program: message.and_then(Result::ok),
        old_is_optional,
        text: text("rule"),
        message: text("message"),
        reason: text("reason"),
        field_path: (!field_path.is_empty()).then(|| normalized(field_path)),
    }
}

/// A path as errors have it: `.spec['a']` within a map is `spec.a`.
fn normalized(path: &str) -> String {
    path.trim_start_matches('.').to_owned()
}
