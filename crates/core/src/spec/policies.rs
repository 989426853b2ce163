//! Policies that a drive file chooses by a word. For each there is one line here: parser, printer and
//! documentation read it, and so do the modules that match on the choice.

use super::words::{Word, words};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Hands every replacement policy to a macro: variant and type, module in `controller/cache`, word,
/// meaning.
macro_rules! each_replacement {
    ($then:ident) => {
        $then! {
            Lru(lru) "lru", "Least recently used";
            Fifo(fifo) "fifo", "First in, first out";
            Clock(clock) "clock", "Second chance: first in, first out, but what was used stays for another round";
            TwoQ(two_q) "2q", "2Q (Johnson and Shasha, VLDB 1994), simplified version";
            Arc(arc) "arc", "ARC (Megiddo and Modha, FAST 2003): what was used once and what was used again, in shares that adapt, by whole units";
            S3Fifo(s3_fifo) "s3-fifo", "S3-FIFO (Yang et al., SOSP 2023): a tenth of the units in a queue, from which what was used twice there goes on to the main one; both first in, first out, and as many names as that one has units are remembered of what gave way";
            Random(random) "random", "Any";
        }
    };
}
pub(crate) use each_replacement;

/// Hands every policy of garbage collection to a macro: variant, with `ftl.gc_choices` or without, word,
/// meaning.
macro_rules! each_gc_policy {
    ($then:ident) => {
        $then! {
            Greedy "greedy", "The one with the fewest valid slots";
            Fifo "fifo", "The one filled first";
            CostBenefit "cost-benefit", "Largest (1 - u) / 2u x age (Rosenblum and Ousterhout, SOSP 1991)";
            DChoices(u32) "d-choices", "The one with the fewest valid slots among `ftl.gc_choices` picked at random";
        }
    };
}

macro_rules! replacements {
    ($($variant:ident($module:ident) $word:literal, $meaning:literal;)*) => {
        words! {
            /// Which unit of a full cache gives way.
            pub enum Replacement {
                $($variant $word, $meaning;)*
            }
        }
    };
}
each_replacement!(replacements);

macro_rules! gc_policies {
    ($($variant:ident $(($choices:ty))? $word:literal, $meaning:literal;)*) => {
        /// How a superblock is chosen for garbage collection.
        #[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
        pub enum GcPolicy {
            $(#[doc = $meaning] $variant $(($choices))?,)*
        }

        impl GcPolicy {
            /// Every word.
            pub const WORDS: &'static [Word] = &[$(Word { word: $word, meaning: $meaning }),*];
            pub(super) const CHOICES: &'static [&'static str] = &[$($word),*];

            /// The word used in drive files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $word,)*
                }
            }

            /// The policy of a word, with `ftl.gc_choices` for the one that needs it.
            #[must_use]
            pub fn from_word(word: &str, gc_choices: u32) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant $(({
                        let choices: $choices = gc_choices;
                        choices
                    }))?),)*
                    _ => None,
                }
            }
        }
    };
}
each_gc_policy!(gc_policies);

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for GcPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_one_policy_and_no_other_word_any() {
        for (policy, entry) in Replacement::ALL.into_iter().zip(Replacement::WORDS) {
            assert_eq!(Replacement::from_word(entry.word), Some(policy));
            assert_eq!(policy.name(), entry.word);
        }
        for entry in GcPolicy::WORDS {
            let policy = GcPolicy::from_word(entry.word, 7).unwrap();
            assert_eq!(policy.name(), entry.word);
        }
        assert_eq!(
            GcPolicy::from_word("d-choices", 7),
            Some(GcPolicy::DChoices(7))
        );
        for unknown in ["", "LRU", "lru ", "any"] {
            assert_eq!(Replacement::from_word(unknown), None);
            assert_eq!(GcPolicy::from_word(unknown, 7), None);
        }
    }
}
