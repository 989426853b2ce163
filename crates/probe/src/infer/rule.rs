//! By which rule a verdict was reached, and how often that rule was right.

use crate::role::Role;
use std::fmt;

/// A way to conclude where a role lives. Each role has its own.
///
/// What was counted over simulated drives drawn at random, each verdict against what was planted.
///
/// Source: `LODGER_PROBE_CALIBRATE=1 LODGER_PROBE_ALL=0 LODGER_PROBE_WRITES=0 LODGER_PROBE_FIRST=98201
/// LODGER_PROBE_DRIVES=150 cargo test --release -p lodger --test command probe_blind::every_rule -- --nocapture`, 93 drives from
/// seed 99001 on and 300 from 50001 on; for write buffers with `LODGER_PROBE_WRITES=2`. Rules of maps that host memory does
/// not move have 80 drives more, with `LODGER_PROBE_UNMOVED=1` from seeds 360001 and 364001 on. Verdicts that were wrong on
/// other drives of the generator count as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    name: &'static str,
    /// Right verdicts by it.
    right: u32,
    /// Verdicts by it in one run.
    cases: u32,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Rule {
    pub(crate) const fn counted(name: &'static str, right: u32, cases: u32) -> Self {
        Rule { name, right, cases }
    }

    /// Those of all roles.
    pub fn all() -> impl Iterator<Item = Rule> {
        let roles = Role::ALL.into_iter();
        roles.flat_map(|role| role.about().rules).copied()
    }

    /// How sure a verdict by this rule is when `agree` of `runs` runs came to it. Where all agree: how
    /// often the rule was right, and no more than that, for the same rule on the same drive goes wrong in the
    /// same way again. Where not all do: at most how often the next run would agree.
    #[must_use]
    pub fn confidence(self, agree: usize, runs: usize) -> f64 {
        let measured = expected_share(self.right, self.cases);
        if agree < runs {
            return measured.min(expected_share(agree as u32, runs as u32));
        }
        measured
    }

    /// Why it does not get surer.
    pub(crate) fn limit(self) -> String {
        let Rule { right, cases, .. } = self;
        if cases == 0 {
            return "no simulated drive has shown how often this rule is right".to_owned();
        }
        format!(
            "this rule was right on {right} of {cases} simulated drives, and repeating it adds nothing"
        )
    }
}

/// Share to expect next after `right` of `cases` (Jeffreys' prior): never certain, and even odds where
/// nothing is known.
fn expected_share(right: u32, cases: u32) -> f64 {
    (f64::from(right) + 0.5) / (f64::from(cases) + 1.0)
}
