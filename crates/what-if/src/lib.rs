//! What would a drive do? Questions and answers as JSON text, for a page that asks them of a WebAssembly
//! module. That page is put together by the binary of this crate, from the files of `page/`.
//!
//! ```
//! let question = r#"{"ask": "run", "setup": {"drive": "rc100-480", "hmb": "32MiB", "seed": 1},
//!     "job": "[job]\nrw=randread\nbs=4k\nsize=16g\nnumber_ios=100"}"#;
//! let answer: serde_json::Value = serde_json::from_str(&lodger_what_if::answer(question)).unwrap();
//! assert_eq!(answer["report"]["jobs"][0]["read"]["total_ios"], 100);
//! ```
//!
//! | `ask` | answer |
//! |---|---|
//! | `about` | `version`, and `drives`: what there is to choose |
//! | `run` | `report`: what `lodger simulate --output-format json` prints; `measured`: its `map` and `breakdown` of the last job alone; `over_time`, if asked for: columns of `--timeline` by name |
//! | `advise` | `advice`: what `lodger advise --output-format json` prints; `notes` on how the trace was read |
//! | `draw` | `html`: curves or bars in the look of all pages |
//!
//! A question that cannot be answered gets `error`, a text, and where there is one `hint`: whatever it says,
//! [`answer`] neither panics nor works for ever.

mod about;
mod advice;
mod drawing;
mod question;
mod simulation;

use lodger_run::Error;
use question::Question;
use serde_json::{Value, json};

/// Answers a question.
#[must_use]
pub fn answer(question: &str) -> String {
    let answer = answered(question).unwrap_or_else(|error| match error.hint {
        Some(hint) => json!({"error": error.message, "hint": hint}),
        None => json!({"error": error.message}),
    });
    answer.to_string()
}

fn answered(question: &str) -> Result<Value, Error> {
    let question = serde_json::from_str(question)
        .map_err(|error| Error::input(format!("the question is not understood: {error}")))?;
    match question {
        Question::About => about::answer(),
        Question::Run(run) => simulation::answer(&run),
        Question::Advise(advise) => advice::answer(&advise),
        Question::Draw(draw) => drawing::answer(draw),
    }
}
