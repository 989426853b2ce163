//! The module in the page. Who calls it writes a question where [`question`] says, calls [`answer`], and
//! reads as many bytes as that says from where [`answer_at`] says. Both are JSON; [`lodger_what_if`] says
//! which. One question at a time: a module has no threads.

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Room for a question of so many bytes; stands until the next call.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
pub extern "C" fn question(length: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(length, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question; returns the length of the answer in bytes.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let question = QUESTION.take();
    let text = String::from_utf8_lossy(&question);
    let answer = lodger_what_if::answer(&text);
    ANSWER.replace(answer);
    ANSWER.with_borrow(String::len)
}

/// Where the answer begins; it stands until the next call of [`answer`].
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}
