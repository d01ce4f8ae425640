//! The known name that a mistyped one is most like.

/// Return the first of the names with the smallest edit distance; None only when there are no names.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names.into_iter().min_by_key(|name| distance(wanted, name))
}

/// Return Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_letter_is_found() {
        assert_eq!(nearest("lat_pip", ["lat_ctx", "lat_pipe", "bw_pipe"]), Some("lat_pipe"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn the_distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
