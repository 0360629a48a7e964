//! Evaluates expressions that have been checked: what admission policies say of a request.
//!
//! Walks the tree of the crate's parser. Values of JSON are looked at where they are and never
//! copied; variables of a policy are evaluated when somebody names them, once. Each step costs what
//! it costs upstream or close to it, and what costs more than its budget ends with an error, so that
//! no expression runs for long or makes anything large. Pure: time and authorization are asked of
//! whoever calls.

mod access; // What the user of the request may do.
mod amounts; // Quantities and semantic versions.
mod call; // Which function a name means.
mod format; // `'%s'.format([...])`.
mod json; // What expressions give, as JSON.
mod lists; // Functions of lists and sets.
mod loops; // Macros.
mod machine; // The walk. Start reading here.
mod made; // Configurations and patches.
mod named_formats; // `format.dns1123Label()`.
mod network; // Addresses, ranges and URLs.
mod operators; // Arithmetic, equality and order.
mod texts; // Functions of strings.
mod times; // Durations and points in time.
mod value; // What expressions give.

use super::environment::Environment;
use super::{Compiled, Expression, Functions, bounds};
use crate::go_regexp;
use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue};
use machine::Machine;
use regex::Regex;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

pub use super::bounds::on_deep_stack;
pub use access::{Access, Question, Verdict};
pub use amounts::Semver;
pub use times::{duration, timestamp};
pub use value::{Key, Text, Val};

/// What one expression may cost, as upstream.
pub const COST_OF_ONE_MAX: u64 = 1_000_000;
/// What all expressions of a policy may cost together for one binding and parameter, as upstream.
pub const COST_OF_ALL_MAX: u64 = 10_000_000;
/// What the conditions of a policy or a webhook may cost together, as upstream.
pub const COST_OF_CONDITIONS_MAX: u64 = 2_500_000;
/// Trees this deep are walked on the caller's stack: a level takes up to 15 KB of it in a build
/// that is not optimized.
pub const SHALLOW_DEPTH_MAX: usize = 40;

/// Why an evaluation gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// In the words of upstream's evaluator.
    #[error("{0}")]
    Error(Rc<str>),
    /// The expression costs more than one may.
    #[error("operation cancelled: actual cost limit exceeded")]
    Limit,
    /// All expressions together cost more than they may.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    Spent,
}

impl Fault {
    fn new(why: impl AsRef<str>) -> Self {
        Self::Error(why.as_ref().into())
    }

    fn overload() -> Self {
        Self::new("no such overload")
    }

    /// One that no other operand makes good.
    fn is_final(&self) -> bool {
        !matches!(self, Self::Error(_))
    }
}

/// An expression that was checked and can be evaluated.
#[derive(Debug)]
pub struct Program {
    /// Taken when dropped alone.
    root: Option<IdedExpr>,
    pub compiled: Compiled,
    /// Of the tree.
    depth: usize,
    /// It has a loop, and so may take a while.
    loops: bool,
    /// What `matches` is called with as it stands.
    patterns: BTreeMap<String, Regex>,
}

/// Its tree may be deep. Where there is no thread to drop it on, it stays.
impl Drop for Program {
    fn drop(&mut self) {
        let mut root = ManuallyDrop::new(self.root.take());
        if self.depth <= SHALLOW_DEPTH_MAX {
            drop(root.take());
        } else {
            let _ = on_deep_stack(|| drop(root.take()));
        }
    }
}

impl Program {
    /// Reads and checks an expression. The error is what upstream's compiler says.
    pub fn compile(text: &str, environment: &Environment) -> Result<Self, String> {
        if let Some(problem) = bounds::problem(text) {
            return Err(problem);
        }
        let spent = environment.budget().expression(text);
        spent.map_err(|why| format!("ERROR: <input>:-1:0: {why}"))?;
        let compile = || {
            let expression = Expression::parse(text)?;
            let checked = expression.check(environment)?;
            let compiled = expression.seen(checked.of.clone(), &Functions::default());
            environment.budget().add(checked.steps());
            let patterns = patterns(&expression.root);
            let depth = depth(&expression.root);
            let loops = loops(&expression.root);
            Ok(Self {
                root: Some(expression.root),
                compiled,
                depth,
                loops,
                patterns,
            })
        };
        on_deep_stack(compile)
            .unwrap_or_else(|error| Err(format!("no thread to read it on: {error}")))
    }

    /// How deep the walk recurses, bar the variables that it names.
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn loops(&self) -> bool {
        self.loops
    }

    fn root(&self) -> &IdedExpr {
        self.root.as_ref().expect("it is taken when dropped alone")
    }
}

/// Functions whose work grows faster than what they look at, and macros that the parser leaves.
const LOOPING: [&str; 16] = [
    "all",
    "contains",
    "distinct",
    "equivalent",
    "exists",
    "existsOne",
    "exists_one",
    "intersects",
    "range",
    "replace",
    "sort",
    "sortBy",
    "sum",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

fn loops(root: &IdedExpr) -> bool {
    let mut loops = false;
    super::visit(root, &mut |node| {
        loops |= match &node.expr {
            Expr::Comprehension(_) => true,
            Expr::Call(call) => {
                // To compile a pattern takes longer than to look for it.
                let compiles = pattern_of(call).is_some_and(|last| {
                    !matches!(last.expr, Expr::Literal(_))
                        && matches!(&*call.func_name, "matches" | "find" | "findAll")
                });
                compiles || LOOPING.contains(&&*call.func_name)
            }
            _ => false,
        };
    });
    loops
}

/// Patterns that stand in an expression as they are, which the checker let pass.
fn patterns(root: &IdedExpr) -> BTreeMap<String, Regex> {
    let mut found = BTreeMap::new();
    super::visit(root, &mut |node| {
        if let Expr::Call(call) = &node.expr
            && matches!(&*call.func_name, "matches" | "find" | "findAll")
            && let Some(last) = pattern_of(call)
            && let Expr::Literal(LiteralValue::String(text)) = &last.expr
            && let Ok(regex) = go_regexp::compile(text.inner())
        {
            found.insert(text.inner().to_owned(), regex);
        }
    });
    found
}

fn pattern_of(call: &cel::common::ast::CallExpr) -> Option<&IdedExpr> {
    match call.target {
        Some(_) => call.args.first(),
        None => call.args.get(1),
    }
}

fn depth(node: &IdedExpr) -> usize {
    let entries = |all: &[cel::common::ast::IdedEntryExpr]| {
        let each = all.iter().map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => depth(&field.value),
            EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
        });
        each.max().unwrap_or(0)
    };
    1 + match &node.expr {
        Expr::Select(select) => depth(&select.operand),
        Expr::Call(call) => {
            let all = call.target.as_deref().into_iter().chain(&call.args);
            all.map(depth).max().unwrap_or(0)
        }
        Expr::Comprehension(loops) => {
            let parts = [
                &loops.iter_range,
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ];
            parts.into_iter().map(depth).max().unwrap_or(0)
        }
        Expr::List(list) => list.elements.iter().map(depth).max().unwrap_or(0),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(made) => entries(&made.entries),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

/// A variable of a policy. What is wrong with its expression is told to whoever names it.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub program: Result<Program, String>,
}

/// What expressions may name.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    pub names: Vec<(&'a str, Val<'a>)>,
    /// What `variables` has, each of which names those before it alone.
    pub variables: &'a [Variable],
    pub access: Option<&'a dyn Access>,
}

/// Evaluates the expressions of one policy over one request.
#[derive(Debug)]
pub struct Evaluation<'a> {
    machine: Machine<'a>,
}

impl<'a> Evaluation<'a> {
    /// `cost_max` is what all may cost together.
    pub fn new(given: Given<'a>, cost_max: u64) -> Self {
        Self {
            machine: Machine::new(given, cost_max),
        }
    }

    /// What is left of what all may cost.
    pub fn left(&self) -> u64 {
        self.machine.left()
    }

    pub fn evaluate(&mut self, program: &'a Program) -> Result<Val<'a>, Fault> {
        self.machine.run(program)
    }
}

/// Whether anything of a policy recurses deeper than a worker's stack takes: its expressions, with
/// variables that name variables.
pub fn is_deep<'p>(variables: &[Variable], others: impl Iterator<Item = &'p Program>) -> bool {
    let of_variables = variables.iter().filter_map(|one| one.program.as_ref().ok());
    let chain: usize = of_variables.map(Program::depth).sum();
    let longest = others.map(Program::depth).max().unwrap_or(0);
    chain + longest > SHALLOW_DEPTH_MAX
}

#[cfg(test)]
mod tests;
