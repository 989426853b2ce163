//! What can be done to a drive as a whole.

use std::fmt;

/// Where host memory is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchWhere {
    /// At the beginning of what is granted.
    Inside,
    /// Just behind the piece at the highest address of what is granted.
    Beside,
    /// At the beginning of what was granted last, whether it still is or not.
    Former,
}

impl TouchWhere {
    /// All of them, by name.
    pub const ALL: [(&'static str, TouchWhere); 3] = [
        ("inside", TouchWhere::Inside),
        ("beside", TouchWhere::Beside),
        ("former", TouchWhere::Former),
    ];
}

/// Something that is done to a drive. Times are picoseconds; without one, until it is ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is gone from its slot: all reads of its registers give ones, and it touches nothing any more.
    Vanish(Option<u64>),
    /// It is back, as after power on; flash and caches are as they were.
    Return,
    /// Power fails and comes back.
    PowerCut,
    /// The firmware does nothing: no command is fetched, none ends, no reset does.
    Stall(Option<u64>),
    /// The firmware goes on.
    Resume,
    /// The media takes no more writes.
    ReadOnly,
    /// It does.
    Writable,
    /// The drive is hot: an I/O command enters it no sooner than so much after the one before.
    Throttle(u64),
    /// It is not.
    Cool,
    /// So many bits of the host memory that is granted change, at places drawn at random.
    Corrupt(u32),
    /// Host memory is not there any more, though nobody has taken it back: until it is granted anew.
    Withdraw,
    /// 64 bytes are written to the host's memory where the drive has no business.
    Touch(TouchWhere),
}

impl Act {
    /// Whether the host has to begin anew afterwards, as with a drive that was plugged in.
    #[must_use]
    pub fn takes_drive_away(&self) -> bool {
        matches!(self, Act::Vanish(_) | Act::Return | Act::PowerCut)
    }
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// As a rule says it, times in seconds.
impl fmt::Display for Act {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |to: &mut fmt::Formatter<'_>, word: &str, ps: &Option<u64>| match ps {
            Some(ps) => write!(to, "{word} {}s", seconds(*ps)),
            None => write!(to, "{word}"),
        };
        match self {
            Act::Vanish(ps) => with(to, "vanish", ps),
            Act::Stall(ps) => with(to, "stall", ps),
            Act::Throttle(ps) => with(to, "throttle", &Some(*ps)),
            Act::Return => write!(to, "return"),
            Act::PowerCut => write!(to, "power-cut"),
            Act::Resume => write!(to, "resume"),
            Act::ReadOnly => write!(to, "read-only"),
            Act::Writable => write!(to, "writable"),
            Act::Cool => write!(to, "cool"),
            Act::Corrupt(bits) => write!(to, "corrupt {bits}"),
            Act::Withdraw => write!(to, "withdraw"),
            Act::Touch(place) => {
                let named = TouchWhere::ALL.iter().find(|(_, other)| other == place);
                write!(to, "touch {}", named.map_or("", |(name, _)| name))
            }
        }
    }
}
