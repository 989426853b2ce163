//! Enumerations that a drive file names by words. Each is one table of variant, word and meaning: parser,
//! printer and documentation read it, so that none can know a word that the others do not.

/// A word of a drive file and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// As the file has it.
    pub word: &'static str,
    /// As the documentation says it.
    pub meaning: &'static str,
}

/// What [`words`] makes.
pub(super) trait Words: Sized {
    /// The variant of a word.
    fn of(word: &str) -> Option<Self>;
}

/// An enumeration with its words.
macro_rules! words {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident {
            $($(#[$inner:meta])* $variant:ident $word:literal, $meaning:literal;)*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, serde::Serialize, serde::Deserialize, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name {
            $(#[doc = $meaning] $(#[$inner])* $variant,)*
        }

        #[allow(dead_code, reason = "not each is asked for all of it")]
        impl $name {
            /// Every variant.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];
            /// Every word, in the same order.
            pub const WORDS: &'static [$crate::spec::words::Word] =
                &[$($crate::spec::words::Word { word: $word, meaning: $meaning }),*];
            pub(super) const CHOICES: &'static [&'static str] = &[$($word),*];

            /// The word used in drive files and results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The variant of a word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::spec::words::Words for $name {
            fn of(word: &str) -> Option<Self> {
                Self::from_word(word)
            }
        }
    };
}
pub(super) use words;

words! {
    /// Bits per flash cell.
    pub enum Cell {
        Slc "slc", "One bit a cell";
        Mlc "mlc", "Two bits a cell";
        Tlc "tlc", "Three bits a cell";
        Qlc "qlc", "Four bits a cell";
    }
}

words! {
    /// A memory that a role can be placed on.
    pub enum Tier {
        Sram "sram", "SRAM of the controller";
        Dram "dram", "DRAM on the drive";
        Hmb "hmb", "DRAM of the host, lent to the drive (NVMe Host Memory Buffer)";
        Slc "slc", "Flash run in single-bit mode";
        Pm "pm", "Memory on the drive that keeps its contents when power fails (DRAM with capacitors)";
        Cxl "cxl", "Memory attached to the host that the drive reaches by load and store (CXL.mem)";
        HpbCache "host", "DRAM of the host that the host's driver owns (Host Performance Booster). No role is placed there: the host decides what it keeps";
    }
}

words! {
    /// How much of the granted host memory a drive makes use of.
    pub enum Rounding {
        None "none", "All of it";
        PowerOfTwo "power-of-two", "The largest power of two that fits";
    }
}

words! {
    /// Form of the translation pages in a memory.
    #[derive(Default)]
    pub enum Encoding {
        #[default]
        Flat "flat", "An entry for each 4 KiB";
        Runs "runs", "Runs of neighbouring physical pages";
        Learned "learned", "Learned segments (LeaFTL), exact ones";
    }
}

words! {
    /// How what leaves the drive is protected.
    #[derive(Default)]
    pub enum Integrity {
        #[default]
        None "none", "Not protected";
        Crc "crc", "A checksum: finds accidents";
        Mac "mac", "Encrypted, with a keyed tag and an epoch: finds forgeries and replays";
    }
}

words! {
    /// When a buffered write is acknowledged.
    pub(super) enum Acknowledge {
        Buffered "buffered", "As soon as its data is in the buffer";
        Programmed "programmed", "Once its data is in flash";
    }
}

words! {
    /// How room in the buffer is given to writes.
    pub(super) enum Pacing {
        None "none", "As long as there is any";
        Drain "drain", "In the second half of the buffer, no faster than it empties";
    }
}

words! {
    /// Where the write log of a volatile buffer is kept.
    pub(super) enum Log {
        None "none", "There is none";
        Pm "pm", "In power-protected memory";
    }
}

words! {
    /// What becomes of block commands to a pinned range.
    pub enum Gate {
        Refuse "refuse", "They fail (status Access Denied)";
        Hold "hold", "They wait until the range is flushed";
    }
}

words! {
    /// Which protocol host and drive speak about map entries.
    pub enum HpbProtocol {
        Paper "paper", "That of Jeong et al., HotStorage 2017";
        Jedec "jedec", "JESD220-3 as Linux 5.15 to 6.5 spoke it";
    }
}

words! {
    /// Version of JEDEC's protocol.
    pub(super) enum HpbVersion {
        One "1.0", "Entries for reads of one page";
        Two "2.0", "Entries of larger reads, too, sent ahead in an HPB WRITE BUFFER";
    }
}

words! {
    /// Who decides which regions are active (JEDEC).
    pub(super) enum HpbControl {
        Device "device", "The drive recommends regions";
        Host "host", "The host decides";
    }
}

words! {
    /// How the host comes by its entries at boot.
    pub(super) enum HpbBoot {
        Warm "warm", "They are there when the run starts";
        Load "load", "They are fetched from the start of the run on, beside requests";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::keys::{KEYS, Kind};
    use crate::spec::{GcPolicy, Replacement};

    /// Enumerations with their words, and where a key may say them.
    fn tables() -> Vec<&'static [Word]> {
        vec![
            Cell::WORDS,
            Tier::WORDS,
            Rounding::WORDS,
            Encoding::WORDS,
            Integrity::WORDS,
            Acknowledge::WORDS,
            Pacing::WORDS,
            Log::WORDS,
            Gate::WORDS,
            HpbProtocol::WORDS,
            HpbVersion::WORDS,
            HpbControl::WORDS,
            HpbBoot::WORDS,
            Replacement::WORDS,
            GcPolicy::WORDS,
        ]
    }

    #[test]
    fn every_word_of_every_key_stands_in_one_table() {
        let mut found = 0;
        for key in KEYS {
            let (Kind::Choice(words) | Kind::Words(words)) = key.kind else {
                continue;
            };
            if key.path == "link.ufs" {
                continue;
            }
            let in_table = |table: &&[Word]| {
                let known = |word: &&str| table.iter().any(|entry| entry.word == *word);
                words.iter().all(known)
            };
            assert!(tables().iter().any(in_table), "{}: {words:?}", key.path);
            found += 1;
        }
        assert!(found > 15, "{found} keys take words");
    }

    #[test]
    fn a_word_names_one_variant_and_no_other_word_any() {
        for (tier, entry) in Tier::ALL.into_iter().zip(Tier::WORDS) {
            assert_eq!(Tier::from_word(entry.word), Some(tier));
            assert_eq!(tier.name(), entry.word);
        }
        for table in tables() {
            for (at, entry) in table.iter().enumerate() {
                let again = table[..at].iter().any(|other| other.word == entry.word);
                assert!(!again && !entry.meaning.is_empty(), "{}", entry.word);
            }
        }
        for unknown in ["", "SRAM", "sram ", "none"] {
            assert_eq!(Tier::from_word(unknown), None);
        }
    }
}
