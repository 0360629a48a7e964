//! Types of expressions, and whether a value of one may stand where another is wanted.
//!
//! As upstream's checker has them: what is dynamic goes anywhere, null goes where a message may be,
//! and a type parameter is bound to the most general of what it was seen as.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

const OPTIONAL: &str = "optional_type";
/// A type of more parts is too large: `{x: x}` doubles that of `x`, and types are trees to whoever
/// walks them.
const PARTS_MAX: usize = 512;
/// Parts that are looked at while one expression is checked: many times what one needs that a man
/// writes, and well below a second.
const STEPS_MAX: usize = 2_000_000;
/// Parameters that stand for parameters, and types in types: the stack has room for as many.
const DEPTH_MAX: usize = 8192;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Known when the expression runs.
    #[default]
    Dyn,
    /// As `Dyn`, under the name that upstream has for values of any type.
    Any,
    /// Of what was found wrong; goes anywhere, so that nothing is found wrong twice.
    Error,
    Null,
    Bool,
    Bytes,
    Double,
    Int,
    String,
    Uint,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// A type that has no fields: `kubernetes.Quantity`, `optional_type(int)`.
    Opaque(Arc<str>, Vec<Type>),
    Struct(Arc<str>),
    /// The type of a type.
    Kind(Option<Arc<Type>>),
    Parameter(Arc<str>),
}

impl Type {
    pub fn list(item: Type) -> Self {
        Self::List(Arc::new(item))
    }

    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub fn optional(of: Type) -> Self {
        Self::Opaque(OPTIONAL.into(), vec![of])
    }

    pub fn of_struct(name: &str) -> Self {
        Self::Struct(name.into())
    }

    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error)
    }

    /// What an optional may hold.
    pub fn optional_of(&self) -> Option<&Type> {
        match self {
            Self::Opaque(name, parameters) if &**name == OPTIONAL => parameters.first(),
            _ => None,
        }
    }

    /// From `map(string,list(<A>))`; `None` for what is no type.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "dyn" => Self::Dyn,
            "any" => Self::Any,
            "null_type" => Self::Null,
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "double" => Self::Double,
            "int" => Self::Int,
            "string" => Self::String,
            "uint" => Self::Uint,
            "google.protobuf.Duration" => Self::Duration,
            "google.protobuf.Timestamp" => Self::Timestamp,
            "type" => Self::Kind(None),
            text if text.starts_with('<') => {
                let name = text.strip_prefix('<')?.strip_suffix('>')?;
                Self::Parameter(name.into())
            }
            text => match text.split_once('(') {
                Some((name, rest)) => Self::generic(name, rest.strip_suffix(')')?)?,
                None if text.starts_with("kubernetes.authorization.") => Self::of_struct(text),
                None => Self::Opaque(text.into(), Vec::new()),
            },
        })
    }

    fn generic(name: &str, parameters: &str) -> Option<Self> {
        let all: Option<Vec<Type>> = split(parameters).into_iter().map(Self::parse).collect();
        let mut all = all?.into_iter();
        Some(match name {
            "list" => Self::list(all.next()?),
            "map" => Self::map(all.next()?, all.next()?),
            "type" => Self::Kind(Some(Arc::new(all.next()?))),
            name => Self::Opaque(name.into(), all.collect()),
        })
    }

    pub fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(item) => vec![item],
            Self::Map(key, value) => vec![key, value],
            Self::Opaque(_, parameters) => parameters.iter().collect(),
            Self::Kind(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// Whether it has too many parts.
    pub fn is_large(&self) -> bool {
        let mut parts = 0;
        let mut left = vec![self];
        while let Some(one) = left.pop() {
            parts += 1;
            if parts > PARTS_MAX {
                return true;
            }
            left.extend(one.parameters());
        }
        false
    }

    /// The same with other parameters.
    fn with(&self, change: &mut dyn FnMut(&Type) -> Type) -> Self {
        match self {
            Self::List(item) => Self::list(change(item)),
            Self::Map(key, value) => Self::map(change(key), change(value)),
            Self::Opaque(name, parameters) => {
                let parameters = parameters.iter().map(&mut *change);
                Self::Opaque(name.clone(), parameters.collect())
            }
            Self::Kind(Some(of)) => Self::Kind(Some(Arc::new(change(of)))),
            other => other.clone(),
        }
    }

    /// The type with each parameter changed.
    pub fn instantiated(&self, change: &mut dyn FnMut(&Type) -> Type) -> Self {
        match self {
            Self::Parameter(_) => change(self),
            other => other.with(&mut |inner| inner.instantiated(change)),
        }
    }

    /// As messages of the checker show a type.
    pub fn shown(&self) -> String {
        match self {
            Self::Duration => "duration".to_owned(),
            Self::Timestamp => "timestamp".to_owned(),
            Self::Null => "null".to_owned(),
            other => other.text(&Self::shown),
        }
    }

    fn text(&self, inner: &dyn Fn(&Type) -> String) -> String {
        let mut text = match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Double => "double",
            Self::Int => "int",
            Self::String => "string",
            Self::Uint => "uint",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Kind(_) => "type",
            Self::Opaque(name, _) | Self::Struct(name) | Self::Parameter(name) => name,
        }
        .to_owned();
        let parameters = self.parameters();
        if !parameters.is_empty() {
            let parameters: Vec<String> = parameters.into_iter().map(inner).collect();
            let _ = write!(text, "({})", parameters.join(", "));
        }
        text
    }
}

/// As the API shows the type of a result.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&|inner| inner.to_string()))
    }
}

/// At the commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// What type parameters stand for, so far.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: BTreeMap<Arc<str>, Type>,
    /// What each change replaced, to take changes back.
    log: Vec<(Arc<str>, Option<Type>)>,
    fresh: usize,
    /// How deep `fits` is.
    depth: usize,
    /// Parts looked at so far.
    steps: Cell<usize>,
    /// A type was too large to say what its parameters stand for.
    is_over: Cell<bool>,
}

impl Bindings {
    /// A parameter of which nothing is known.
    pub fn fresh(&mut self) -> Type {
        let name = format!("_var{}", self.fresh);
        self.fresh += 1;
        Type::Parameter(name.into())
    }

    /// Whether each of `given` may stand where the one of `wanted` is; binds parameters if so.
    pub fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        let mark = self.log.len();
        let fits = given.len() == wanted.len()
            && given
                .iter()
                .zip(wanted)
                .all(|(given, wanted)| self.fits(given, wanted));
        if fits {
            self.log.clear();
        } else {
            self.take_back(mark);
        }
        fits
    }

    pub fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        let pair = [given, wanted].map(std::slice::from_ref);
        self.assign_all(pair[0], pair[1])
    }

    fn take_back(&mut self, mark: usize) {
        while self.log.len() > mark {
            let Some((name, before)) = self.log.pop() else {
                return;
            };
            match before {
                Some(before) => self.bound.insert(name, before),
                None => self.bound.remove(&name),
            };
        }
    }

    fn bind(&mut self, name: &Arc<str>, to: Type) {
        let before = self.bound.insert(Arc::clone(name), to);
        self.log.push((Arc::clone(name), before));
    }

    /// Whether there was more to do than there may be. Answers from then on mean nothing.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Parts that were looked at.
    pub fn steps(&self) -> usize {
        self.steps.get()
    }

    /// Counts a part; `false` when there have been too many.
    fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > STEPS_MAX {
            self.is_over.set(true);
        }
        !self.is_over()
    }

    /// The type with what its parameters stand for; those that are free are dynamic, if wanted.
    pub fn resolved(&self, given: &Type, frees: bool) -> Type {
        let mut left = 4 * PARTS_MAX;
        let changed = self.changed(given, frees, &mut left);
        changed.unwrap_or_else(|| given.clone())
    }

    /// `None` where nothing is to be changed, so that what is shared stays so.
    fn changed(&self, given: &Type, frees: bool, left: &mut usize) -> Option<Type> {
        if *left == 0 {
            self.is_over.set(true);
        }
        if !self.step() {
            return None;
        }
        *left -= 1;
        if let Type::Parameter(name) = given {
            let bound = self.end(name);
            return match bound {
                Some(Type::Parameter(_)) | None if frees => Some(Type::Dyn),
                Some(bound) => {
                    let changed = self.changed_inner(bound, frees, left);
                    Some(changed.unwrap_or_else(|| bound.clone()))
                }
                None => None,
            };
        }
        self.changed_inner(given, frees, left)
    }

    fn changed_inner(&self, given: &Type, frees: bool, left: &mut usize) -> Option<Type> {
        let parameters = given.parameters();
        let all: Vec<Option<Type>> = parameters
            .into_iter()
            .map(|one| self.changed(one, frees, left))
            .collect();
        if all.iter().all(Option::is_none) {
            return None;
        }
        let mut all = all.into_iter();
        Some(given.with(&mut |before| {
            let changed = all.next().flatten();
            changed.unwrap_or_else(|| before.clone())
        }))
    }

    /// What a parameter stands for: the last in a row of parameters, or what that is bound to.
    fn end(&self, name: &Arc<str>) -> Option<&Type> {
        let mut found = self.bound.get(name)?;
        while let Type::Parameter(next) = found {
            let Some(bound) = self.bound.get(next).filter(|_| self.step()) else {
                break;
            };
            found = bound;
        }
        Some(found)
    }

    fn fits(&mut self, given: &Type, wanted: &Type) -> bool {
        if self.depth == DEPTH_MAX {
            self.is_over.set(true);
        }
        if !self.step() {
            return false;
        }
        self.depth += 1;
        let fits = self.fits_below(given, wanted);
        self.depth -= 1;
        fits
    }

    fn fits_below(&mut self, given: &Type, wanted: &Type) -> bool {
        if let Type::Parameter(name) = wanted {
            match self.substitutes(given, name) {
                Substitution::Valid => return true,
                Substitution::Other => return false,
                Substitution::Cyclic => {}
            }
        }
        if let Type::Parameter(name) = given {
            return matches!(self.substitutes(wanted, name), Substitution::Valid);
        }
        let is_open = |one: &Type| one.is_dyn() || one.is_error();
        if is_open(given) || is_open(wanted) {
            return true;
        }
        match (given, wanted) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::Opaque(a, _), Type::Opaque(b, _)) if a != b => false,
            (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..))
            | (Type::Opaque(..), Type::Opaque(..)) => {
                let (given, wanted) = (given.parameters(), wanted.parameters());
                given.len() == wanted.len()
                    && given
                        .iter()
                        .zip(wanted)
                        .all(|(given, wanted)| self.fits(given, wanted))
            }
            (given, wanted) => given == wanted,
        }
    }

    /// Whether `given` may be what the parameter stands for; binds it if so.
    fn substitutes(&mut self, given: &Type, name: &Arc<str>) -> Substitution {
        if matches!(given, Type::Parameter(own) if own == name) {
            return Substitution::Valid;
        }
        let parameter = Type::Parameter(Arc::clone(name));
        match self.bound.get(name).cloned() {
            Some(bound) => {
                if *given == bound {
                    return Substitution::Valid;
                }
                if !self.fits(given, &bound) {
                    return Substitution::Other;
                }
                let general = most_general(given, &bound).clone();
                if !self.refers(&parameter, &general) {
                    self.bind(name, general);
                }
                Substitution::Valid
            }
            None if self.refers(&parameter, given) => Substitution::Cyclic,
            None => {
                self.bind(name, given.clone());
                Substitution::Valid
            }
        }
    }

    /// Whether the parameter occurs within a type.
    fn refers(&self, parameter: &Type, within: &Type) -> bool {
        let mut within = within;
        loop {
            if parameter == within || !self.step() {
                return true;
            }
            let Type::Parameter(name) = within else {
                break;
            };
            match self.bound.get(name) {
                Some(bound) => within = bound,
                None => return false,
            }
        }
        let mut inner = within.parameters().into_iter();
        inner.any(|one| self.refers(parameter, one))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Substitution {
    Valid,
    /// The parameter already stands for something else.
    Other,
    /// The parameter occurs in what it would stand for.
    Cyclic,
}

fn is_nullable(one: &Type) -> bool {
    matches!(
        one,
        Type::Null | Type::Opaque(..) | Type::Struct(_) | Type::Duration | Type::Timestamp
    )
}

/// The one that says less, of two that go with each other.
pub fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if is_as_general(a, b) { a } else { b }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    let is_wild = |one: &Type| one.is_dyn() || matches!(one, Type::Parameter(_));
    if is_wild(a) {
        return true;
    }
    if is_wild(b) {
        return false;
    }
    match (a, b) {
        (Type::Kind(_), Type::Kind(_)) => true,
        (Type::Opaque(one, _), Type::Opaque(other, _)) if one != other => false,
        (Type::List(_), Type::List(_))
        | (Type::Map(..), Type::Map(..))
        | (Type::Opaque(..), Type::Opaque(..)) => {
            let (a, b) = (a.parameters(), b.parameters());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_as_general(a, b))
        }
        (a, b) => a == b,
    }
}
