//! Parts of a computation side by side.

/// Do the work on each part: the first in this thread, each of the others in one of its own.
pub fn in_parallel<T: Send>(parts: Vec<T>, work: impl Fn(T) + Sync) {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return };
    std::thread::scope(|scope| {
        let work = &work;
        for part in parts {
            scope.spawn(move || work(part));
        }
        work(first);
    });
}

#[cfg(test)]
mod tests {
    use super::in_parallel;

    #[test]
    fn every_part_is_worked_on_once() {
        let mut numbers = [0; 10];
        in_parallel(numbers.chunks_mut(3).collect(), |part| part.iter_mut().for_each(|number| *number += 1));
        assert_eq!(numbers, [1; 10]);
    }
}
