//! What can be typed after `lodger ctl`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger serve --drive bg4 --socket drive       listens at drive.ctl, too
  lodger ctl drive status                       beside it, in another terminal
  lodger ctl drive rules add 'fail 0x281 opcode=read every=100'
  lodger ctl drive rules add 'power-cut on=program skip=20'   at the 21st time that flash begins to program
  lodger ctl drive rules list
  lodger ctl drive rules remove 1
  lodger ctl drive vanish --for 5s              gone from its slot, and back
  lodger ctl drive power-cut --after 250ms
  lodger ctl drive throttle 1ms                 hot: 1000 commands a second at most
  lodger ctl drive touch former                 writes where its host memory was
  lodger ctl drive status --json

Times are the drive's: with `serve --speed 10` a second of it passes in a tenth. The page on the live drive
has the words of rules, the page on bugs of host memory what to do with them.";

const RULES_HELP: &str = "\
A rule is what is done, then conditions that must all hold, as in a file for `lodger serve --faults`:
  fail STATUS, delay TIME, drop, pretend, answer DWORD, change AT HEX, stale FIRST-LAST    to a command
  vanish, return, power-cut, stall, resume, read-only, writable, throttle TIME, cool,
  corrupt BITS, withdraw, touch WHERE                                                      to the drive
Conditions: opcode= queue= lba= dwordN= skip= every= times= chance= from= until= at= on= after= written=
depth= granted= pieces=";

/// `lodger ctl`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CtlArgs {
    /// The socket of the drive, or the one it listens at (`serve --ctl`, usually the drive's with `.ctl`)
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// Print the drive's answer as it came: a line of JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    #[allow(missing_docs)]
    pub order: Order,
}

/// When something is done.
#[derive(Debug, Args)]
pub struct After {
    /// How much later, in the drive's time, such as 250ms
    #[arg(long, value_name = "TIME")]
    pub after: Option<String>,
}

/// For how long.
#[derive(Debug, Args)]
pub struct For {
    /// For how long, in the drive's time, such as 5s; else until it is ended
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub when: After,
}

/// What is asked of a drive, or told to it.
#[derive(Debug, Subcommand)]
pub enum Order {
    /// How the drive fares
    Status,
    /// List, add and remove rules by which commands, and the drive, fare badly
    Rules {
        #[command(subcommand)]
        #[allow(missing_docs)]
        order: RulesOrder,
    },
    /// Be gone from the slot: all registers read ones (CSTS FFFFFFFFh), nothing is touched any more
    Vanish(For),
    /// Be in the slot again, as after power on
    Return(After),
    /// Lose power, and get it back: what is volatile is lost, the drive recovers
    PowerCut(After),
    /// Do nothing: no command is fetched, none ends, no reset does; the registers answer
    Stall(For),
    /// Go on after a stall
    Resume(After),
    /// Take no writes any more: they end with Write Fault, and the health page warns
    ReadOnly(After),
    /// Take writes again
    Writable(After),
    /// Be hot: an I/O command enters no sooner than TIME after the one before, and the health page warns
    Throttle {
        /// Between two commands, such as 1ms
        #[arg(value_name = "TIME")]
        gap: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        when: After,
    },
    /// Be hot no more
    Cool(After),
    /// Turn bits of the host memory that is granted over, at places drawn at random
    Corrupt {
        /// How many
        #[arg(value_name = "BITS")]
        bits: u32,
        #[command(flatten)]
        #[allow(missing_docs)]
        when: After,
    },
    /// Have host memory vanish though nobody has taken it back, until it is granted anew
    Withdraw(After),
    /// Write 64 bytes to the host's memory where the drive has no business
    Touch {
        /// `inside` what is granted, `beside` it, or at the beginning of what was granted last (`former`)
        #[arg(value_name = "WHERE")]
        place: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        when: After,
    },
}

/// What is done with rules.
#[derive(Debug, Subcommand)]
pub enum RulesOrder {
    /// Print all rules, with how often each did something
    List,
    /// Add a rule after all others; prints its number
    #[command(after_help = RULES_HELP)]
    Add {
        /// The rule, as a line of a file of rules
        #[arg(required = true, value_name = "RULE")]
        rule: Vec<String>,
    },
    /// Take a rule away, or all of them
    Remove {
        /// Its number, or `all`
        #[arg(value_name = "NUMBER|all")]
        which: String,
    },
}
