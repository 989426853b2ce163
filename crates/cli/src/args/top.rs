//! What can be typed after `lodger top`.

use clap::Args;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  lodger serve --drive rc100-480 --nbd unix:drive --metrics unix:metrics
  lodger top metrics                    beside it, in another terminal
  lodger top localhost:9847             what `--metrics` alone listens at
  lodger top metrics --interval 5 | cat   one look, as text

Rates are of the time between two looks, the first time since the start, and of the drive's own
time: with `serve --speed 10` a second of it passes in a tenth. Ctrl-C ends it.";

/// `lodger top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// The place that `lodger serve --metrics` was given: a socket, or HOST:PORT
    #[arg(value_name = "SOCKET|HOST:PORT")]
    pub place: String,
    /// Seconds between two looks
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    pub interval: Interval,
    /// Look once; so it is where the output is no terminal
    #[arg(long)]
    pub once: bool,
}

/// Time between two looks.
#[derive(Clone, Copy, Debug)]
pub struct Interval(pub Duration);

fn interval(text: &str) -> Result<Interval, String> {
    let seconds: Option<f64> = text.parse().ok();
    match seconds.filter(|seconds| (0.1..=3600.0).contains(seconds)) {
        Some(seconds) => Ok(Interval(Duration::from_secs_f64(seconds))),
        None => Err("must be from 0.1 to 3600 seconds".to_owned()),
    }
}
