//! What memory of a drive is used for. Each role is a file of `infer/` and a line here: what is found about
//! it, how a verdict follows, which experiments it rests on, and how reports show it.

use crate::findings::Findings;
use crate::infer::{self, Rule, Verdict};
use crate::report::Figure;
use crate::target::Description;

/// What the prober knows of a role.
pub(crate) struct About {
    /// Its name in reports.
    pub name: &'static str,
    /// The same for people.
    pub title: &'static str,
    /// What it keeps.
    pub subject: &'static str,
    /// The experiments that are run again for it.
    pub experiments: &'static [&'static str],
    /// Whether its verdict counts on a drive that keeps its speed.
    pub is_read_only: bool,
    /// The rules by which verdicts on it are reached.
    pub rules: &'static [Rule],
    /// How much wider than computed the interval of a size must be to cover the planted one in 95 of 100
    /// cases. Source: as of [`Rule`], and for write buffers 160 drives from seeds 90001 and 95001 on.
    pub size_width: f64,
    /// What one run says about it.
    pub verdict: fn(&mut Findings, &Description) -> Verdict,
    /// What is shown with its verdict, in order.
    pub figures: &'static [Figure<'static>],
}

/// What is found about a role.
pub(crate) trait Finds {
    /// It was looked for.
    fn is_seen(&self) -> bool;
}

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident $file:ident;)*) => {
        /// What memory is used for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Role {
            $($(#[$doc])* $role,)*
        }

        impl Role {
            /// All of them.
            pub const ALL: [Role; [$(stringify!($role)),*].len()] = [$(Role::$role),*];

            pub(crate) const fn about(self) -> &'static About {
                match self {
                    $(Role::$role => &infer::$file::ABOUT,)*
                }
            }
        }

        /// What was found about each role.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Found {
            $($(#[$doc])* pub $file: infer::$file::Found,)*
        }

        impl Found {
            /// Takes over what another run found for a role.
            pub fn take(&mut self, role: Role, other: &Found) {
                match role {
                    $(Role::$role => self.$file.clone_from(&other.$file),)*
                }
            }

            /// Whether a role was looked for.
            #[must_use]
            pub fn is_seen(&self, role: Role) -> bool {
                match role {
                    $(Role::$role => self.$file.is_seen(),)*
                }
            }
        }
    };
}

roles! {
    /// Where data lies in flash.
    Map map;
    /// Data that was read.
    ReadCache read_cache;
    /// Data on its way to flash.
    WriteBuffer write_buffer;
}

impl Role {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// The experiments that are run again for it.
    #[must_use]
    pub const fn experiments(self) -> &'static [&'static str] {
        self.about().experiments
    }

    /// Whether its verdict counts on a drive that keeps its speed.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        self.about().is_read_only
    }
}
