//! Which word was meant.

/// The one of `words` that is most like what was typed, if it is like it at all: of four letters one may be wrong.
pub(crate) fn nearest<'w>(
    typed: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    let distances = words
        .into_iter()
        .map(|word| (strsim::osa_distance(typed, word), word));
    let (distance, word) = distances.min()?;
    (distance <= word.len().div_ceil(4)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn what_is_like_nothing_has_no_word() {
        let of = |typed| nearest(typed, ["block", "ba", "async"]);
        assert_eq!(of("blok"), Some("block"));
        assert_eq!(of("asycn"), Some("async"));
        assert_eq!(of("xx"), None);
        assert_eq!(of(""), None);
    }
}
