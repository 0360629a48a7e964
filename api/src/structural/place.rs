//! Where in a value a walk is: a list linked through the call stack, written out only when
//! something is to be said of it.

use std::fmt::{self, Display, Formatter};

#[derive(Clone, Copy, Debug)]
pub enum Step<'p> {
    Root,
    Field(&'p str),
    Index(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    before: Option<&'p Place<'p>>,
    step: Step<'p>,
}

impl Place<'_> {
    pub const ROOT: Place<'static> = Place {
        before: None,
        step: Step::Root,
    };

    pub fn step<'q>(&'q self, step: Step<'q>) -> Place<'q> {
        Place {
            before: Some(self),
            step,
        }
    }
}

/// `spec.list[0].foo`.
impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            write!(f, "{before}")?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => {
                let is_first = self
                    .before
                    .is_none_or(|before| matches!(before.step, Step::Root));
                write!(f, "{}{name}", if is_first { "" } else { "." })
            }
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}
