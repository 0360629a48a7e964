//! What was measured, for people, for pages and for machines.

use crate::about::About;
use crate::arguments::Common;
use crate::pairs::{self, Pairs};
use crate::side::Side;
use crate::stats::Report;
use anyhow::Context;
use serde_json::json;

pub enum Measured {
    /// Of one server, or of none, once.
    Reports(Vec<Report>),
    Pairs(Pairs),
}

impl Measured {
    /// To standard output, and to a file if one is asked for.
    #[allow(clippy::print_stdout)] // What was measured is for the terminal.
    pub fn tell(self, common: &Common, sides: &[Side], about: &About) -> anyhow::Result<()> {
        let names: Vec<_> = sides.iter().map(|side| side.name.clone()).collect();
        let mut json = match &self {
            Self::Reports(reports) => {
                json!({"reports": reports.iter().map(Report::json).collect::<Vec<_>>()})
            }
            Self::Pairs(pairs) => pairs.json(&names),
        };
        json["run"] = about.json(sides);
        let table = match common.markdown {
            true => {
                let (table, about) = (self.pairs().markdown(&names), about.markdown(sides));
                format!("{table}\n\n{about}")
            }
            false => format!("{}\n{}", about.text(sides), self.table(&names)),
        };
        match &common.json {
            Some(None) => println!("{json}"),
            Some(Some(file)) => {
                println!("{table}");
                std::fs::write(file, format!("{json:#}\n"))
                    .with_context(|| format!("cannot write {}", file.display()))?;
            }
            None => println!("{table}"),
        }
        Ok(())
    }

    fn table(&self, names: &[String]) -> String {
        match self {
            Self::Reports(reports) => {
                let tables: Vec<_> = reports.iter().map(Report::table).collect();
                tables.join("\n")
            }
            Self::Pairs(pairs) => pairs.table(names),
        }
    }

    /// One round is one too.
    fn pairs(self) -> Pairs {
        match self {
            Self::Pairs(pairs) => pairs,
            Self::Reports(reports) => {
                let mut pairs = Pairs::new(1);
                for figure in reports.iter().flat_map(pairs::figures) {
                    pairs.add(0, 0, figure);
                }
                pairs
            }
        }
    }
}
