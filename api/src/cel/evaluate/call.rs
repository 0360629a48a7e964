//! Which function a name means, by the values that it is called with: the checker has seen to what
//! of their types is known before.

use super::machine::{Machine, Outcome};
use super::operators::compare;
use super::value::{Text, Val, whole};
use super::{Fault, amounts, lists, loops, named_formats, network, texts, times};
use crate::exposition::go_number;
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue};

/// What stands before the name of some functions and is no value.
const PACKAGES: [&str; 8] = [
    "cel",
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "optional",
    "sets",
    "strings",
];

impl<'a> Machine<'a> {
    pub fn call(&mut self, call: &'a CallExpr) -> Outcome<'a> {
        match (&*call.func_name, &call.args[..]) {
            ("_&&_", _) => self.both(call, false),
            ("_||_", _) => self.both(call, true),
            ("_?_:_", [condition, yes, no]) => {
                if self.truth(condition)? {
                    self.eval(yes)
                } else {
                    self.eval(no)
                }
            }
            ("@not_strictly_false" | "__not_strictly_false__", [operand]) => {
                match self.eval(operand) {
                    Ok(Val::Bool(is_true)) => Ok(Val::Bool(is_true)),
                    Err(fault) if fault.is_final() => Err(fault),
                    _ => Ok(Val::Bool(true)),
                }
            }
            ("_?._", [operand, field]) => self.optional_select(operand, field),
            ("or" | "orValue", [other]) if call.target.is_some() => self.otherwise(call, other),
            _ => match self.macro_call(call) {
                Some(outcome) => outcome,
                None => self.function(call),
            },
        }
    }

    fn optional_select(&mut self, operand: &'a IdedExpr, field: &'a IdedExpr) -> Outcome<'a> {
        let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
            return Err(Fault::overload());
        };
        let operand = self.eval(operand)?;
        self.spend(1)?;
        match operand {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => self.optional_field(&inner, field.inner()),
            operand => self.optional_field(&operand, field.inner()),
        }
    }

    /// What stands in for an optional that holds nothing, and is not looked at otherwise.
    fn otherwise(&mut self, call: &'a CallExpr, other: &'a IdedExpr) -> Outcome<'a> {
        let target = call.target.as_deref().ok_or_else(Fault::overload)?;
        let is_whole = call.func_name == "or";
        match self.eval(target)? {
            Val::Optional(None) => self.eval(other),
            Val::Optional(Some(inner)) if is_whole => Ok(Val::Optional(Some(inner))),
            Val::Optional(Some(inner)) => Ok((*inner).clone()),
            _ => Err(Fault::overload()),
        }
    }

    fn function(&mut self, call: &'a CallExpr) -> Outcome<'a> {
        let target = call.target.as_deref();
        let package = PACKAGES.into_iter().find(|name| {
            target.is_some_and(|target| loops::is_named(target, name)) && self.local(name).is_none()
        });
        let target = target.filter(|_| package.is_none());
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for one in target.into_iter().chain(&call.args) {
            arguments.push(self.eval(one)?);
        }
        self.spend(1)?;
        let name = call.func_name.as_str();
        let outcome = match package {
            Some(package) => self.of_package(package, name, &arguments)?,
            None => self.plain(name, &arguments)?,
        };
        outcome.ok_or_else(Fault::overload)
    }

    fn of_package(
        &mut self,
        package: &str,
        name: &str,
        arguments: &[Val<'a>],
    ) -> Result<Option<Val<'a>>, Fault> {
        Ok(match (package, name, arguments) {
            ("optional", "none", []) => Some(Val::Optional(None)),
            ("optional", "of", [value]) => Some(Val::some(value.clone())),
            ("optional", "ofNonZeroValue", [value]) => Some(if is_zero(value) {
                Val::Optional(None)
            } else {
                Val::some(value.clone())
            }),
            ("optional", "unwrap", [list]) => lists::unwrapped(list),
            ("lists", "range", [Val::Int(count)]) => Some(lists::range(self, *count)?),
            ("sets", name, [a, b]) => lists::of_sets(self, name, a, b)?,
            ("strings", "quote", [Val::Text(text)]) => Some(self.made_text(texts::quoted(text))?),
            ("jsonpatch", "escapeKey", [Val::Text(text)]) => {
                Some(self.made_text(text.replace('~', "~0").replace('/', "~1"))?)
            }
            ("ip", "isCanonical", [Val::Text(text)]) => Some(network::is_canonical(text)?),
            ("format", name, arguments) => named_formats::find(name, arguments),
            _ => None,
        })
    }

    fn plain(&mut self, name: &str, arguments: &[Val<'a>]) -> Result<Option<Val<'a>>, Fault> {
        if let Some(value) = self.operator(name, arguments)? {
            return Ok(Some(value));
        }
        if let [value] = arguments
            && let Some(value) = self.converted(name, value)?
        {
            return Ok(Some(value));
        }
        Ok(match arguments {
            [Val::Optional(inner)] if name == "hasValue" => Some(Val::Bool(inner.is_some())),
            [Val::Optional(inner)] if name == "value" => match inner {
                Some(inner) => Some((**inner).clone()),
                None => return Err(Fault::new("optional.none() dereference")),
            },
            [Val::Text(text), rest @ ..] => match texts::call(self, name, text, rest)? {
                None => network::of_text(self, name, text, rest)?,
                found => found,
            },
            [Val::Duration(_) | Val::Timestamp(_), ..] => times::part(name, arguments)?,
            [Val::Quantity(_) | Val::Semver(_), ..] => amounts::call(name, arguments)?,
            [Val::Ip(_) | Val::Cidr(_) | Val::Url(_), ..] => network::call(self, name, arguments)?,
            [Val::Format(format), Val::Text(text)] if name == "validate" => {
                Some(named_formats::validate(self, *format, text)?)
            }
            [Val::Asking(asking), rest @ ..] => {
                let asking = std::rc::Rc::clone(asking);
                self.ask(name, &asking, rest)?
            }
            [list, rest @ ..] if list.list().is_some() => lists::call(self, name, list, rest)?,
            _ => None,
        })
    }

    fn operator(&mut self, name: &str, arguments: &[Val<'a>]) -> Result<Option<Val<'a>>, Fault> {
        Ok(Some(match (name, arguments) {
            ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [a, b]) => self.arithmetic(name, a, b)?,
            ("_==_", [a, b]) => Val::Bool(self.equal(a, b)?),
            ("_!=_", [a, b]) => Val::Bool(!self.equal(a, b)?),
            ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
                self.spend_on(a.size().min(b.size()).saturating_sub(1))?;
                let is_number =
                    |one: &Val<'_>| matches!(one, Val::Double(_) | Val::Int(_) | Val::Uint(_));
                let Some(order) = compare(a, b) else {
                    // NaN is neither less nor more.
                    if is_number(a) && is_number(b) {
                        return Ok(Some(Val::Bool(false)));
                    }
                    return Err(Fault::overload());
                };
                Val::Bool(match name {
                    "_<_" => order.is_lt(),
                    "_<=_" => order.is_le(),
                    "_>_" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            ("@in" | "_in_" | "in", [one, all]) => Val::Bool(self.is_in(one, all)?),
            ("_[_]", [of, at]) => self.index(of, at)?,
            ("_[?_]", [of, at]) => self.optional_index(of, at)?,
            ("!_", [Val::Bool(is_true)]) => Val::Bool(!is_true),
            ("-_", [value]) => self.negated(value)?,
            _ => return Ok(None),
        }))
    }

    fn converted(&mut self, name: &str, value: &Val<'a>) -> Result<Option<Val<'a>>, Fault> {
        Ok(Some(match (name, value) {
            ("dyn", value) => value.clone(),
            ("type", value) => Val::Type(value.type_name().into()),
            ("size", Val::Text(text)) => count(text.chars().count()),
            ("size", value) if value.list().is_some() || value.table().is_some() => {
                count(value.size())
            }
            ("size", Val::Bytes(bytes)) => count(bytes.len()),
            ("bool", value) => to_bool(value)?,
            ("bytes", Val::Bytes(_)) | ("double", Val::Double(_)) | ("int", Val::Int(_)) => {
                value.clone()
            }
            ("string", Val::Text(_)) | ("uint", Val::Uint(_)) => value.clone(),
            ("bytes", Val::Text(text)) => {
                self.spend_on(text.len())?;
                Val::Bytes(text.as_bytes().into())
            }
            ("double", value) => to_double(value)?,
            ("int", value) => to_int(value)?,
            ("uint", value) => to_uint(value)?,
            ("string", value) => self.text_of(value)?,
            ("duration", value) => times::duration(value)?,
            ("timestamp", value) => times::timestamp(value)?,
            _ => return Ok(None),
        }))
    }

    fn text_of(&mut self, value: &Val<'a>) -> Outcome<'a> {
        let text = match value {
            Val::Bool(is_true) => is_true.to_string(),
            Val::Int(number) => number.to_string(),
            Val::Uint(number) => number.to_string(),
            Val::Double(number) => go_number(*number),
            Val::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes);
                let text = text
                    .map_err(|_| Fault::new("invalid UTF-8 in bytes, cannot convert to string"))?;
                text.to_owned()
            }
            Val::Duration(nanos) => times::duration_text(*nanos),
            Val::Timestamp(at) => at.to_string(),
            Val::Ip(address) => address.to_string(),
            Val::Cidr(range) => range.to_string(),
            _ => return Err(Fault::overload()),
        };
        self.made_text(text)
    }
}

pub fn count<'a>(number: usize) -> Val<'a> {
    Val::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn unparsed(function: &str, text: &str, why: &str) -> Fault {
    Fault::new(format!("strconv.{function}: parsing {text:?}: {why}"))
}

fn to_bool<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Bool(is_true) => Ok(Val::Bool(*is_true)),
        Val::Text(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            other => Err(unparsed("ParseBool", other, "invalid syntax")),
        },
        _ => Err(Fault::overload()),
    }
}

fn to_double<'a>(value: &Val<'a>) -> Outcome<'a> {
    #[expect(clippy::cast_precision_loss, reason = "as upstream")]
    Ok(Val::Double(match value {
        Val::Int(number) => *number as f64,
        Val::Uint(number) => *number as f64,
        Val::Text(text) => {
            let parsed = text.parse::<f64>();
            parsed.map_err(|_| unparsed("ParseFloat", text, "invalid syntax"))?
        }
        _ => return Err(Fault::overload()),
    }))
}

fn to_int<'a>(value: &Val<'a>) -> Outcome<'a> {
    let overflow = || Fault::new("integer overflow");
    Ok(Val::Int(match value {
        Val::Uint(number) => i64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) => cut(*number).ok_or_else(overflow)?,
        Val::Duration(nanos) => *nanos,
        Val::Timestamp(at) => at.as_second(),
        Val::Text(text) => text
            .parse()
            .map_err(|_| unparsed("ParseInt", text, why(text)))?,
        _ => return Err(Fault::overload()),
    }))
}

fn to_uint<'a>(value: &Val<'a>) -> Outcome<'a> {
    let overflow = || Fault::new("unsigned integer overflow");
    Ok(Val::Uint(match value {
        Val::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) => {
            let whole = cut(*number).and_then(|number| u64::try_from(number).ok());
            whole.ok_or_else(overflow)?
        }
        Val::Text(text) => text
            .parse()
            .map_err(|_| unparsed("ParseUint", text, why(text)))?,
        _ => return Err(Fault::overload()),
    }))
}

fn why(text: &str) -> &'static str {
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    }
}

/// The whole part of a double that an int can hold.
fn cut(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let fits = number > -LIMIT && number < LIMIT;
    #[expect(clippy::cast_possible_truncation, reason = "it is cut, as upstream")]
    fits.then(|| whole(number.trunc()).unwrap_or(number as i64))
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(is_true) => !is_true,
        Val::Int(number) => *number == 0,
        Val::Uint(number) => *number == 0,
        Val::Double(number) => *number == 0.0,
        Val::Duration(nanos) => *nanos == 0,
        Val::Optional(inner) => inner.is_none(),
        Val::Text(_) | Val::Bytes(_) => value.size() == 0,
        Val::Made(made) => made.fields.is_empty(),
        other => (other.list().is_some() || other.table().is_some()) && other.size() == 0,
    }
}

impl<'a> From<&str> for Val<'a> {
    fn from(text: &str) -> Self {
        Val::Text(Text::Own(text.into()))
    }
}
