//! Macros: loops, and what the parser leaves as calls.

use super::Fault;
use super::machine::{Machine, Outcome};
use super::operators::compare;
use super::value::{Key, Val};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

impl<'a> Machine<'a> {
    pub fn run_loop(&mut self, one: &'a ComprehensionExpr) -> Outcome<'a> {
        let range = self.eval(&one.iter_range)?;
        let start = self.eval(&one.accu_init);
        let slot = self.locals.len();
        self.locals.push((&one.accu_var, start));
        let outcome = self.turns(one, slot, &range);
        let outcome = outcome.and_then(|()| self.eval(&one.result));
        self.locals.truncate(slot);
        outcome
    }

    fn turns(
        &mut self,
        one: &'a ComprehensionExpr,
        slot: usize,
        range: &Val<'a>,
    ) -> Result<(), Fault> {
        for (first, second) in self.pairs(range, one.iter_var2.is_some())? {
            self.locals.push((&one.iter_var, Ok(first)));
            if let (Some(name), Some(second)) = (&one.iter_var2, second) {
                self.locals.push((name, Ok(second)));
            }
            let goes_on = match self.truth(&one.loop_cond) {
                Err(fault) if fault.is_final() => return Err(fault),
                Ok(false) => false,
                _ => {
                    self.step(&one.loop_step, &one.accu_var, slot)?;
                    true
                }
            };
            self.locals.truncate(slot + 1);
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The result of a turn takes the place of the last one's. A list is added to where it is.
    fn step(&mut self, node: &'a IdedExpr, accu: &str, slot: usize) -> Result<(), Fault> {
        let outcome = match &node.expr {
            Expr::Ident(name) if name == accu => return self.spend(1),
            Expr::Call(call) => match (&*call.func_name, &call.args[..]) {
                ("_?_:_", [condition, yes, no]) => match self.truth(condition) {
                    Ok(true) => return self.step(yes, accu, slot),
                    Ok(false) => return self.step(no, accu, slot),
                    Err(fault) => Err(fault),
                },
                ("_+_", [left, right]) if is_named(left, accu) => {
                    self.spend(2)?;
                    match self.eval(right) {
                        Ok(added) => self.added(added, slot),
                        Err(fault) => Err(fault),
                    }
                }
                _ => self.eval(node),
            },
            _ => self.eval(node),
        };
        match outcome {
            Err(fault) if fault.is_final() => Err(fault),
            outcome => {
                self.locals[slot].1 = outcome;
                Ok(())
            }
        }
    }

    fn added(&mut self, added: Val<'a>, slot: usize) -> Outcome<'a> {
        let old = std::mem::replace(&mut self.locals[slot].1, Ok(Val::Null))?;
        match (old, &added) {
            (Val::List(mut all), Val::List(more)) => {
                Rc::make_mut(&mut all).extend(more.iter().cloned());
                Ok(Val::List(all))
            }
            (old, added) => self.arithmetic("_+_", &old, added),
        }
    }

    /// `None` for what is no macro.
    pub fn macro_call(&mut self, call: &'a CallExpr) -> Option<Outcome<'a>> {
        let target = call.target.as_deref()?;
        match (&*call.func_name, &call.args[..]) {
            ("bind", [name, value, result]) if is_named(target, "cel") => {
                let name = name_of(name)?;
                let value = self.eval(value);
                Some(self.within(vec![(name, value)], |machine| machine.eval(result)))
            }
            ("optMap" | "optFlatMap", [variable, result]) => {
                let name = name_of(variable)?;
                Some(self.mapped(target, name, result, &call.func_name))
            }
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, holds]) => {
                let names = (name_of(first)?, name_of(second)?);
                Some(self.quantified(&call.func_name, target, names, holds))
            }
            ("sortBy", [variable, key]) => {
                let name = name_of(variable)?;
                Some(self.sorted_by(target, name, key))
            }
            ("transformList" | "transformMap" | "transformMapEntry", arguments) => {
                Some(self.transformed(&call.func_name, target, arguments))
            }
            _ => None,
        }
    }

    fn within<T>(
        &mut self,
        locals: Vec<(&'a str, Outcome<'a>)>,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.locals.len();
        self.locals.extend(locals);
        let result = act(self);
        self.locals.truncate(outer);
        result
    }

    fn mapped(
        &mut self,
        target: &'a IdedExpr,
        name: &'a str,
        result: &'a IdedExpr,
        function: &str,
    ) -> Outcome<'a> {
        let inner = match self.eval(target)? {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => (*inner).clone(),
            _ => return Err(Fault::overload()),
        };
        let made = self.within(vec![(name, Ok(inner))], |machine| machine.eval(result))?;
        match made {
            Val::Optional(_) if function == "optFlatMap" => Ok(made),
            _ if function == "optFlatMap" => Err(Fault::overload()),
            made => Ok(Val::some(made)),
        }
    }

    fn quantified(
        &mut self,
        function: &str,
        target: &'a IdedExpr,
        (first, second): (&'a str, &'a str),
        holds: &'a IdedExpr,
    ) -> Outcome<'a> {
        let range = self.eval(target)?;
        let (mut fault, mut count) = (None, 0);
        for (key, value) in self.pairs(&range, true)? {
            self.spend(1)?;
            let locals = vec![
                (first, Ok(key)),
                (second, value.ok_or_else(Fault::overload)),
            ];
            match self.within(locals, |machine| machine.truth(holds)) {
                Ok(false) if function == "all" => return Ok(Val::Bool(false)),
                Ok(true) if function == "exists" => return Ok(Val::Bool(true)),
                Ok(true) => count += 1,
                Ok(false) => {}
                Err(found) if found.is_final() || count_matters(function) => return Err(found),
                Err(found) => fault = fault.or(Some(found)),
            }
        }
        match (fault, function) {
            (Some(fault), _) => Err(fault),
            (None, "all") => Ok(Val::Bool(true)),
            (None, "exists") => Ok(Val::Bool(false)),
            _ => Ok(Val::Bool(count == 1)),
        }
    }

    fn sorted_by(&mut self, target: &'a IdedExpr, name: &'a str, key: &'a IdedExpr) -> Outcome<'a> {
        let range = self.eval(target)?;
        let list = range.list().ok_or_else(Fault::overload)?;
        let mut keyed = Vec::with_capacity(list.len());
        for one in list.iter() {
            let local = vec![(name, Ok(one.clone()))];
            keyed.push((self.within(local, |machine| machine.eval(key))?, one));
        }
        self.spend_on_sort(keyed.len())?;
        sort(&mut keyed, |one| &one.0)?;
        Ok(Val::own_list(
            keyed.into_iter().map(|(_, one)| one).collect(),
        ))
    }

    /// What a loop goes over: elements or keys; with two variables places and elements, or entries.
    /// Elements are taken as turns come; entries are copied before, which has its price.
    fn pairs<'r>(&mut self, range: &'r Val<'a>, is_double: bool) -> Result<Pairs<'r, 'a>, Fault> {
        if let Some(list) = range.list() {
            let place = |index: usize| Val::Int(i64::try_from(index).unwrap_or(i64::MAX));
            let all = (0..list.len()).filter_map(move |index| {
                let one = list.get(index)?;
                Some(if is_double {
                    (place(index), Some(one))
                } else {
                    (one, None)
                })
            });
            return Ok(Box::new(all));
        }
        let table = range.table().ok_or_else(Fault::overload)?;
        let all = table.entries();
        self.spend_on(all.len())?;
        let all = all.into_iter();
        Ok(Box::new(all.map(move |(key, value)| {
            (key.value(), is_double.then_some(value))
        })))
    }

    /// About as many comparisons as it takes.
    pub fn spend_on_sort(&mut self, count: usize) -> Result<(), Fault> {
        let each = count.checked_ilog2().unwrap_or(0) as usize + 1;
        self.spend_on(count.saturating_mul(each))
    }

    fn transformed(
        &mut self,
        function: &str,
        target: &'a IdedExpr,
        arguments: &'a [IdedExpr],
    ) -> Outcome<'a> {
        let (first, second, filter, result) = match arguments {
            [first, second, result] => (first, second, None, result),
            [first, second, filter, result] => (first, second, Some(filter), result),
            _ => return Err(Fault::overload()),
        };
        let names = name_of(first).zip(name_of(second));
        let (first, second) = names.ok_or_else(Fault::overload)?;
        let range = self.eval(target)?;
        let (mut list, mut map) = (Vec::new(), BTreeMap::new());
        for (key, value) in self.pairs(&range, true)? {
            self.spend(1)?;
            let locals = vec![
                (first, Ok(key.clone())),
                (second, value.ok_or_else(Fault::overload)),
            ];
            let made = self.within(locals, |machine| {
                if let Some(filter) = filter
                    && !machine.truth(filter)?
                {
                    return Ok(None);
                }
                machine.eval(result).map(Some)
            })?;
            match (made, function) {
                (None, _) => {}
                (Some(made), "transformList") => list.push(made),
                (Some(made), "transformMap") => {
                    map.insert(Key::of(&key).ok_or_else(Fault::overload)?, made);
                }
                (Some(made), _) => {
                    let entries = made.table().ok_or_else(Fault::overload)?.entries();
                    for (key, value) in entries {
                        if map.contains_key(&key) {
                            let shown = super::texts::shown(&key.value());
                            return Err(Fault::new(format!(
                                "insert failed: key {shown} already exists"
                            )));
                        }
                        map.insert(key, value);
                    }
                }
            }
        }
        Ok(match function {
            "transformList" => Val::own_list(list),
            _ => Val::Map(Rc::new(map)),
        })
    }
}

/// All must have been asked.
fn count_matters(function: &str) -> bool {
    function.ends_with("ne")
}

/// A stable sort by keys of one type.
pub fn sort<'a, T>(all: &mut [T], key: impl Fn(&T) -> &Val<'a>) -> Result<(), Fault> {
    // Before it begins: a sort by what has no order, such as NaN, may end in a panic.
    let is_ordered = |one: &T| {
        let (own, first) = (key(one), key(&all[0]));
        compare(own, own).is_some() && compare(first, own).is_some()
    };
    if !all.iter().all(is_ordered) {
        return Err(Fault::overload());
    }
    all.sort_by(|a, b| compare(key(a), key(b)).unwrap_or(Ordering::Equal));
    Ok(())
}

type Pairs<'r, 'a> = Box<dyn Iterator<Item = (Val<'a>, Option<Val<'a>>)> + 'r>;

pub fn is_named(node: &IdedExpr, name: &str) -> bool {
    matches!(&node.expr, Expr::Ident(own) if own == name)
}

fn name_of(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}
