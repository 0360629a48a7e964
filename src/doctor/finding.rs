//! What a check found, and how it is told.

use crate::show;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    Ok,
    /// It runs, but not well or not for long.
    Warn,
    /// It does not run.
    Fail,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    pub found: String,
    /// What to do; nothing where all is well.
    pub remedy: String,
}

impl Finding {
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Ok,
            found: found.into(),
            remedy: String::new(),
        }
    }

    pub fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Warn,
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    pub fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(check, found, remedy)
        }
    }
}

/// A row a finding; what to do stands below its row, where it can be as long as it needs to.
pub fn table(findings: &[Finding]) -> String {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let verdict = match finding.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "fail",
            };
            vec![
                finding.check.to_owned(),
                verdict.to_owned(),
                finding.found.clone(),
            ]
        })
        .collect();
    let table = show::columns(&["CHECK", "VERDICT", "FOUND"], &rows);
    let mut lines = Vec::new();
    for (number, line) in table.lines().enumerate() {
        lines.push(line.to_owned());
        let finding = number.checked_sub(1).and_then(|row| findings.get(row));
        if let Some(finding) = finding.filter(|finding| !finding.remedy.is_empty()) {
            lines.push(format!("    {}", finding.remedy));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_is_wrong() {
        let findings = [
            Finding::ok("clock", "in step"),
            Finding::fail("port 6443", "taken by nginx", "Stop it, or choose --listen"),
        ];
        expect_test::expect![[r#"
            CHECK       VERDICT   FOUND
            clock       ok        in step
            port 6443   fail      taken by nginx
                Stop it, or choose --listen"#]]
        .assert_eq(&table(&findings));
    }
}
